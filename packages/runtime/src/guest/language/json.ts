// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import { json, jsonParse, jsonStringify, setHidden } from './primordials.ts'
import { lookLike } from './substitutes.ts'

/**
 * Replaces what reads and writes JSON by functions that call it. V8 looks for the order to end where it enters a function that is
 * written in JavaScript; in a loop it does so only once so much of its code has run, however long that took. A loop that called
 * nothing but `JSON.parse`, a millisecond each, went on for half a second after its isolate was disposed, which cost its host.
 */
export function installJson(): void {
  const substitutes = {
    parse(text: string, reviver?: Parameters<typeof jsonParse>[1]): unknown {
      return jsonParse(text, reviver)
    },
    stringify(value: unknown, replacer?: Parameters<typeof jsonStringify>[1], space?: string | number): string {
      return jsonStringify(value, replacer, space)
    },
  }
  setHidden(json, 'parse', lookLike(substitutes.parse, jsonParse))
  setHidden(json, 'stringify', lookLike(substitutes.stringify, jsonStringify))
}
