import { typedArrayLength } from '../language/primordials.ts'
import { reportUncaught } from './errors.ts'
import { library } from './host.ts'

/** The Streams API, from web-streams-polyfill, which is loaded when it is first needed. */
type Streams = typeof import('web-streams-polyfill')
export type ReadableStream<T = unknown> = import('web-streams-polyfill').ReadableStream<T>
export type StreamReader = import('web-streams-polyfill').ReadableStreamDefaultReader<Uint8Array>

export function streams(): Streams {
  return library('streams')
}

/** Also true for a stream of another implementation, such as one that the function brought along. */
export function isReadableStream(value: object): value is ReadableStream<Uint8Array> {
  return typeof (value as { getReader?: unknown }).getReader === 'function'
}

/** Whether anything was read from a stream or it was canceled. */
export function isDisturbed(stream: ReadableStream): boolean {
  return (stream as unknown as { _disturbed?: boolean })._disturbed === true
}

/** A stream that gives the bytes in one chunk. */
export function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  const source: UnderlyingSource = {
    __proto__: null,
    type: 'bytes',
    pull(controller) {
      if (typedArrayLength(bytes) > 0) controller.enqueue(bytes)
      controller.close()
      // What a reader with a buffer of its own still waits for.
      controller.byobRequest?.respond(0)
    },
  }
  return new (streams().ReadableStream)<Uint8Array>(source)
}

interface UnderlyingSource {
  readonly __proto__: null
  readonly type: 'bytes'
  pull(controller: import('web-streams-polyfill').ReadableByteStreamController): void
}

/** Reads a stream that is empty, so that it counts as read. */
export function discardStream(stream: ReadableStream): void {
  void stream.getReader().read()
}

/** Cancels a stream by its reader, or by itself if it has none. What its source throws is logged: nobody else would hear it. */
export async function cancelBy(holder: Pick<ReadableStream, 'cancel'>, stream: ReadableStream, reason: unknown): Promise<void> {
  // What it failed with, `cancel` would reject with: no error of its source's.
  if (hasFailed(stream)) return
  try {
    await holder.cancel(reason)
  } catch (error) {
    reportUncaught(error, 'error in cancel() of a stream')
  }
}

function hasFailed(stream: ReadableStream): boolean {
  return (stream as unknown as { _state?: string })._state === 'errored'
}
