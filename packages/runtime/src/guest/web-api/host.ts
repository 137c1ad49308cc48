/**
 * All that the web APIs need of the host: lines for the log, random bytes, fetches, a timer, the time, how long a body may be,
 * whether the invocation was canceled, buffers that count against the memory limit, and libraries. No other file of this folder
 * imports anything of the bridge: see test/border.test.ts.
 */
import type { LogLevel } from '@carpool/core'
import { typedArrayLength } from '../language/primordials.ts'
import { bridge } from '../port.ts'

export { type BodyKind, type InvokeHead } from '../../bridge.ts'
export { maxBodyBytes, tooLongText } from '../body-limit.ts'
export { ByteQueue } from '../byte-queue.ts'
export { type Channel, isChannel, messageCost, type MessageKind, type MessagePart } from '../channels.ts'
export { now, timeOrigin } from '../clock.ts'
export { type FetchReceiver, startFetch, startUpload, stopFetch } from '../fetches.ts'
export { whenCanceled } from '../invocation.ts'
export { library, loadedLibrary } from '../libraries.ts'
export { resizableBuffer } from '../memory/reservation.ts'
export { invocationNow } from '../port.ts'
export { OpenWebSocket } from '../sockets.ts'
export { nextEntry, setTimeout } from '../timers.ts'

/** Writes to the log of the invocation that runs. `isRejection`: of a promise that nobody awaits. */
export function logText(level: LogLevel, text: string, isRejection = false): void {
  bridge.log(level, text, isRejection)
}

/** Fills with random bytes of the system. */
export function fillRandom(bytes: Uint8Array): void {
  const length = typedArrayLength(bytes)
  for (let at = 0; at < length; ) at = bridge.random(bytes, at)
}
