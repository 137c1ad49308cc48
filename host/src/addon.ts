import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import ivm from 'isolated-vm'

/** Events of an isolate, as bits. */
export const BATCH_DONE = 1
export const GONE = 2
export const MESSAGE = 4
export const GROWN = 8
export const GAVE_UP = 16
export const OVER = 32

/** More entries than the addon keeps the CPU times of. */
const MAX_ENTRIES = 256

/**
 * What the addon in `native/` gives to the host. Every isolate has an index in it, and four things of its own:
 *
 * A CPU clock of entries. isolated-vm has a clock of isolates as well, but as it is shipped that counts the time of day while
 * the isolate is entered, also while its thread waits for a core. The addon reads the CPU clock of the thread that runs the
 * isolate: from within, when an entry begins and when a batch ends, and from outside while an entry runs.
 *
 * An eye on its memory, which V8 has only now and then: what it takes beyond its limit comes from a stock of the process, and
 * ends it.
 *
 * A way to suspend what runs in it.
 *
 * A mailbox: entries go in together, by one call of isolated-vm, and messages of the guest wait until the host reads them.
 *
 * To guests it gives native functions, for those libraries of the runtime that take them.
 */
interface Addon {
  /** The array that `readEntryCpu` fills. */
  shareEntryCpu(cpuNs: Float64Array): void
  /** @returns for how many entries there is a CPU time; the last place has the most memory that the isolate ever held */
  readEntryCpu(index: number): number
  resetEntryCpu(index: number): void
  /** @returns CPU time of what V8 did on its own between batches, in ns, since the last call */
  takeBetween(index: number): number
  /** @returns whether the isolate can be suspended */
  suspend(index: number): boolean
  resume(index: number): void
  /** What is measured from now on does not begin until {@link releaseBegin}, when all of it has been given to isolated-vm. */
  holdBegin(index: number): void
  releaseBegin(index: number): void
  /** @returns whether the thread that runs the isolate is limited to few cores now, and was not before */
  setAffinity(index: number): boolean
  clearAffinity(index: number): void
  /** @returns whether the thread that runs the isolate takes long turns now, and did not before */
  lengthenTurns(index: number): boolean
  resetTurns(index: number): void
  push(index: number, op: number, number: number, text: string, kind: number, body: string): void
  /** Hands what was pushed to the guest's `run`; no thread may be in the isolate. Resets the CPU times of its entries. */
  enter(index: number): void
  /** The isolate is about to be ended: of the batch that runs, no further entry begins. */
  close(index: number): void
  /**
   * @returns the messages of the guest since the last read: of each an operation, three numbers and two texts, of which the
   * second may be bytes, one after the other; undefined if there are none
   */
  readOutbox(index: number): Array<number | string | Uint8Array> | undefined
  /** What all isolates together may take beyond their memory limits, in bytes. Unless it is called, there is no bound. */
  setMemoryStock(bytes: number): void
  /** Whether it sees what V8 and isolated-vm take, and when threads enter isolates and leave them. */
  readonly watches: boolean
  /** What the isolate holds, as last seen, in bytes; while an entry runs, with what it took since. */
  heldBytes(index: number): number
  release(index: number): void
  /**
   * Keeps a script for `boot` and `library` of guests, outside of all heaps and for good. Its characters must be of one byte
   * each.
   * @returns its index, one more than that of the script before; undefined if there is no room
   */
  addScript(name: string, source: string): number | undefined
  /** Has it called with indexes, each followed by its events. */
  listen(onEvents: (events: readonly number[]) => void): void
}

const platform = `${process.platform}-${process.arch}`
const file = join(import.meta.dirname, '../native/prebuilt', `${platform}-${process.versions.modules}.node`)
if (!existsSync(file)) {
  throw new Error(
    `The addon of isolates is not built for ${platform} and Node.js ${process.version}: ` +
      'npm run build:addon builds it, with a C++ compiler.',
  )
}

export const nativeModule = new ivm.NativeModule(file)
export const addon = createRequire(import.meta.url)(file) as Addon

if (!addon.watches) {
  throw new Error(
    `The addon of isolates does not see what this Node.js does (${process.execPath}), so nothing would bound the memory of ` +
      'functions, or measure all of their CPU time: it needs one that is linked with the C library dynamically, and isolated-vm ' +
      'as it is shipped.',
  )
}

/** What the last call of `readEntryCpu` has found, in ns; in the last place, in bytes. */
export const entryCpuNs = new Float64Array(MAX_ENTRIES)
export const PEAK_BYTES = MAX_ENTRIES - 1
addon.shareEntryCpu(entryCpuNs)
