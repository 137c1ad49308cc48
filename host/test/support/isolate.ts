import { joinScripts } from '@carpool/runtime/bridge'
import type { Test } from 'tap'
import { Bootstrap, GuestIsolate } from '../../src/isolates/guest-isolate.ts'
import '../../../test/support/own-exit.ts'

/** Entries are texts that are run; what is said of each is its number and what came of it. */
const CORE = `(function boot(names, ...functions) {
  const { say, tell, question, library } = Object.fromEntries(names.split(',').map((name, i) => [name, functions[i]]))
  globalThis.tell = tell
  globalThis.ask = question
  globalThis.say = (text, body) => say(2, 0, 0, 0, text, body)
  globalThis.names = names
  globalThis.library = library
  globalThis.rejections = []
  return {
    rejected(isHandled, promise, reason) { rejections.push(isHandled ? 'handled' : reason) },
    load(argument, factory) { say(1, 0, 0, 0, argument + ' ' + JSON.stringify(factory())) },
    dispatch(op, number, text, kind, body) {
      if (op === 0) return
      if (op === 5) return void rejections.push('settled')
      globalThis.given = [op, number, text, kind, body]
      if (op === 1) say(1, number, 0, 0, String((0, eval)(text)), '')
      else say(3, number, kind, -0.5, text, body)
    },
  }
})`
/** What is behind it: libraries 1 and 2. */
const LIBRARIES = [
  `(function (given) { return ['one', given, globalThis.counted = (globalThis.counted ?? 0) + 1].join() })`,
  `(function () { throw new Error('broken') })`,
]
const BOOT = new Bootstrap(joinScripts([CORE, ...LIBRARIES]))

/** Runs the text, and says what it gives. */
export const RUN = 1
/** What is said of a text that ran. */
export const RAN = 1
/** What a text said itself. */
export const SAID = 2
/** Says what it was given. */
export const ECHO = 3

type Message = readonly [op: number, a: number, b: number, c: number, text: string, body: string | Uint8Array]

export interface Rig {
  readonly isolate: GuestIsolate
  /** Has texts run as one batch. Resolves when they have, or the isolate is gone. */
  batch(...texts: readonly string[]): Promise<void>
  /** Has what was pushed run. */
  entered(): Promise<void>
  /** All messages since. */
  messages(): Message[]
  /** CPU time of each entry, in ns; of an isolate that is gone, as it was when its last batch ended. */
  entryCpuNs(): number[]
  /** Runs one text, and gives what came of it; undefined if it threw, or the isolate is gone. */
  run(text: string): Promise<string | undefined>
  /** Resolves with the next text that the guest hands to `tell`, whose thread waits. */
  nextTold(): Promise<string>
  /** What the guest has asked, each time waiting for the answer. */
  readonly asked: readonly number[]
  /** How often messages from outside of a batch were reported. */
  readonly outsideOfBatches: () => number
  /** How often it was reported that much memory was taken. */
  readonly growths: () => number
}

/** An isolate that runs texts. */
export async function isolateWith(t: Test, memoryLimitMb = 32): Promise<Rig> {
  const tellings: string[] = []
  const asked: number[] = []
  let wake = (): void => {}
  let onBatchDone = (): void => {}
  let grown = 0
  let outside = 0
  const isolate = await GuestIsolate.create({
    bootstrap: BOOT,
    callbacks: {
      tell: (text: string) => {
        tellings.push(text)
        wake()
        return undefined
      },
      question: (n: number) => {
        asked.push(n)
        return n * 6
      },
    },
    memoryLimitMb,
    onCatastrophe: (reason) => t.fail(reason),
  })
  let received: Message[] = []
  let cpuAtEnd: number[] = []
  const read = (): void => isolate.readMessages((...one) => received.push(one))
  const entryCpuNs = (): number[] => [...isolate.entryCpuNs.subarray(0, isolate.readEntryCpu())]
  isolate.listen({
    batchDone: () => {
      // It may be gone for good in a moment.
      read()
      cpuAtEnd = entryCpuNs()
      onBatchDone()
    },
    messagesWait: () => outside++,
    grown: () => grown++,
  })
  t.teardown(() => isolate.dispose())
  const entered = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    onBatchDone = resolve
    isolate.enter()
    return promise
  }
  const batch = (...texts: readonly string[]): Promise<void> => {
    for (const [index, text] of texts.entries()) isolate.push(RUN, index, text)
    return entered()
  }
  const messages = (): Message[] => {
    read()
    const all = received
    received = []
    return all
  }
  return {
    isolate,
    batch,
    entered,
    messages,
    entryCpuNs: () => (isolate.disposed ? cpuAtEnd : entryCpuNs()),
    asked,
    outsideOfBatches: () => outside,
    growths: () => grown,
    run: async (text) => {
      await batch(text)
      return messages().find(([op]) => op === RAN)?.[4]
    },
    nextTold: async () => {
      while (tellings.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return tellings.shift() ?? ''
    },
  }
}
