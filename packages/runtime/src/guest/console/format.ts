import { jsonStringify, type List, SafeNumber, stringCharCodeAt, stringSlice, trunc } from '../primordials.ts'
import { inspect } from './inspect.ts'
import { toText } from '../to-text.ts'

const PERCENT = 0x25

/** Joins the arguments of a console call as `util.format` does: `%s %d %i %f %j %o %O %c %%` in the first take those that follow. */
export function format(args: List<unknown>): string {
  const first = args.length === 0 ? '' : args[0]
  if (typeof first !== 'string') return joinRest('', args, 0)
  if (args.length === 1) return first
  let text = ''
  let next = 1
  let copied = 0
  for (let index = 0; index < first.length - 1; index++) {
    if (stringCharCodeAt(first, index) !== PERCENT) continue
    const letter = first[index + 1]!
    if (letter !== '%' && next >= args.length) continue
    const shown = letter === '%' ? '%' : formatOne(letter, args[next])
    if (shown === undefined) continue
    text += stringSlice(first, copied, index) + shown
    copied = index + 2
    index++
    if (letter !== '%') next++
  }
  return joinRest(text + stringSlice(first, copied), args, next)
}

function joinRest(start: string, args: List<unknown>, from: number): string {
  let text = start
  for (let index = from; index < args.length; index++) {
    const value = args[index]
    text += (index === 0 ? '' : ' ') + (typeof value === 'string' ? value : inspect(value))
  }
  return text
}

/** @returns undefined if the letter is no specifier */
function formatOne(letter: string, value: unknown): string | undefined {
  switch (letter) {
    case 's':
      return typeof value === 'string' ? value : inspect(value, { depth: 0 })
    case 'd':
      return typeof value === 'bigint' ? `${value}n` : `${toNumber(value)}`
    case 'i':
      return typeof value === 'bigint' ? `${value}n` : `${trunc(toNumber(value))}`
    case 'f':
      return `${toNumber(value)}`
    case 'j':
      return toJson(value)
    case 'o':
      return inspect(value, { depth: 4 })
    case 'O':
      return inspect(value)
    case 'c':
      return ''
    default:
      return undefined
  }
}

function toNumber(value: unknown): number {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? SafeNumber(value) : NaN
}

function toJson(value: unknown): string {
  try {
    return toText(jsonStringify(value))
  } catch {
    return '[Circular]'
  }
}
