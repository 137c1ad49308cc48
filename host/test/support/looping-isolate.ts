import { Bootstrap, GuestIsolate } from '../../src/isolates/guest-isolate.ts'
import { Account } from '../../src/accounting/account.ts'
import { ENTRIES } from '@carpool/runtime/bridge'
import t from 'tap'
import { EntryQueue } from '../../src/scheduler/entry-queue.ts'
import { Entry } from '../../src/scheduler/batch.ts'
import { batchLog, schedulerOf, type BatchLog } from './fake-isolate.ts'
import '../../../test/support/own-exit.ts'

/** A guest that can only loop; to ask for ever, it says that it has begun. */
const BOOT = new Bootstrap(`(function boot(names, ...functions) {
  const { begun } = Object.fromEntries(names.split(',').map((name, i) => [name, functions[i]]))
  return {
    rejected() {},
    load() {},
    dispatch(op, count, text) {
      if (op === 0) return
      if (text === 'for ever') begun()
      let sum = 0
      for (let i = 0; text === 'for ever' || i < count; i++) sum += i % 7
      if (text === 'fail') throw new Error('thrown')
    },
  }
})`)

export interface Looping {
  readonly isolate: GuestIsolate
  readonly queue: EntryQueue
  readonly log: BatchLog
  /** Resolves when a loop without end has begun. */
  readonly begun: Promise<void>
}

export async function loopingIsolate(): Promise<Looping> {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const isolate = await GuestIsolate.create({
    bootstrap: BOOT,
    callbacks: {
      begun: () => {
        resolve()
        return undefined
      },
    },
    memoryLimitMb: 32,
    onCatastrophe: (reason) => t.fail(reason),
  })
  t.teardown(() => isolate.dispose())
  const log = batchLog()
  const queue = new EntryQueue(isolate, log, schedulerOf(1))
  isolate.listen({ batchDone: () => queue.batchDone(), messagesWait: () => {}, grown: () => {} })
  return { isolate, queue, log, begun }
}

export type Loop = 'loop' | 'fail' | 'for ever'

export function loop(account: Account, count: number, how: Loop = 'loop'): Entry {
  return new Entry(account, ENTRIES.settleFetch, count, how)
}

/** Resolves when what runs is charged. */
export function charged(queue: EntryQueue): Promise<void> {
  return new Promise((resolve) => queue.whenCharged({ runsOn: false, charged: resolve }))
}

export async function drained(queue: EntryQueue): Promise<void> {
  while (queue.batch !== undefined) await charged(queue)
}
