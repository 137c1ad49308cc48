import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import ivm from 'isolated-vm'

/** What the addon gives to the host. */
interface Addon {
  spans(slot: number): number[]
  forget(slot: number): void
  release(slot: number): void
  /** @returns whether the isolate can be held */
  hold(slot: number): boolean
  resume(slot: number): void
  /** @returns whether the thread that runs the isolate is kept to a few cores now, and was not before */
  confine(slot: number): boolean
  unconfine(slot: number): void
}

/**
 * The CPU clock of entries. isolated-vm has a clock of isolates as well, but as it is shipped that counts the time of day while the isolate is
 * entered, also while its thread waits for a core. The addon in `native/` reads the CPU clock of the thread that runs the isolate: from
 * within, when an entry begins and when a stay ends, and from outside while an entry runs. It also holds entries and lets them go on.
 */
export interface EntryClock {
  readonly module: ivm.NativeModule
  readonly addon: Addon
}

const file = join(
  import.meta.dirname,
  '../native/prebuilt',
  `${process.platform}-${process.arch}-${process.versions.modules}.node`,
)

/** Undefined where the addon is not built for this platform and version of Node.js. */
export const entryClock: EntryClock | undefined = existsSync(file)
  ? { module: new ivm.NativeModule(file), addon: createRequire(import.meta.url)(file) as Addon }
  : undefined
