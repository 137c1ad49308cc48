import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import ivm from 'isolated-vm'

/** Events of a slot, as bits. */
export const LEFT = 1
export const GONE = 2
export const SAID = 4

/** More entries than the addon keeps the times of. */
const MAX_SPANS = 256

/**
 * What the addon in `native/` gives to the host. Every isolate has a slot in it, with three things:
 *
 * A CPU clock of entries. isolated-vm has a clock of isolates as well, but as it is shipped that counts the time of day while
 * the isolate is entered, also while its thread waits for a core. The addon reads the CPU clock of the thread that runs the
 * isolate: from within, when an entry begins and when a stay ends, and from outside while an entry runs.
 *
 * A brake, which holds entries and lets them go on.
 *
 * A mailbox: entries go in together, by one call of isolated-vm, and what the guest says waits for the host to take it.
 */
interface Addon {
  /** The array that `spans` fills. */
  tellIn(spans: Float64Array): void
  /** @returns how many spans there are now */
  spans(slot: number): number
  forget(slot: number): void
  /** @returns whether the isolate can be held */
  hold(slot: number): boolean
  resume(slot: number): void
  /** @returns whether the thread that runs the isolate is kept to a few cores now, and was not before */
  confine(slot: number): boolean
  unconfine(slot: number): void
  push(slot: number, op: number, number: number, text: string, kind: number, body: string): void
  /** What was pushed is there for the guest's `run`; no thread may be in the isolate. Forgets its spans. */
  enter(slot: number): void
  /**
   * @returns what the guest has said since: of each an operation, three numbers and two texts, one after the other; undefined
   * if that is nothing
   */
  take(slot: number): Array<number | string> | undefined
  release(slot: number): void
  /** Has it called with numbers of slots, each followed by its events. */
  listen(onEvents: (events: readonly number[]) => void): void
}

const platform = `${process.platform}-${process.arch}`
const file = join(import.meta.dirname, '../native/prebuilt', `${platform}-${process.versions.modules}.node`)
if (!existsSync(file)) {
  throw new Error(
    `The addon of isolates is not built for ${platform} and Node.js ${process.version}: ` +
      'npm run build:clock builds it, with a C++ compiler.',
  )
}

export const nativeModule = new ivm.NativeModule(file)
export const addon = createRequire(import.meta.url)(file) as Addon

/** What the last call of `spans` has found, in ns of CPU. */
export const spansNs = new Float64Array(MAX_SPANS)
addon.tellIn(spansNs)
