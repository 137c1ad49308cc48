/**
 * All that the web APIs need of the host: lines for the log, random bytes, fetches, a timer, the time, buffers that count
 * against the memory limit, and the parts that are loaded later. No other file of this folder imports anything of the bridge: see test/border.test.ts.
 */
import type { LogLevel } from '@carpool/core'
import type { PARTS } from '../../bridge.ts'
import { bridge } from '../port.ts'

export { type BodyKind, ENTROPY_BYTES, type InvokeHead } from '../../bridge.ts'
export { now } from '../clock.ts'
export { startFetch, stopFetch } from '../fetches.ts'
export { resizableBuffer } from '../memory/reservation.ts'
export { currentInvocation } from '../port.ts'
export { setTimeout } from '../timers.ts'

/** Writes to the log of the invocation that runs. */
export function logText(level: LogLevel, text: string): void {
  bridge.log(level, text)
}

/** Loads a part of the runtime. Not to be called twice for one part. @throws whatever the language throws when it has no room */
export function loadPart(name: (typeof PARTS)[number]): unknown {
  return bridge.part(name)
}

/** Fresh random bytes, {@link ENTROPY_BYTES} of them, one character for each. Blocks until the host has given them. */
export function entropy(): string {
  return bridge.entropy()
}
