import { bytesSet, SafeList, SafeTypeError, SafeUint8Array, typedArrayLength, viewName } from '../language/primordials.ts'
import { library } from './host.ts'

/** The Streams API, from web-streams-polyfill, which is loaded when it is first needed. */
type Streams = typeof import('web-streams-polyfill')
export type ReadableStream<T = unknown> = import('web-streams-polyfill').ReadableStream<T>

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

/** Reads a stream to its end. @throws TypeError if a chunk is not of bytes, or what the stream fails with */
export async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader()
  const chunks = new SafeList<Uint8Array>()
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (viewName(value) !== 'Uint8Array') throw new SafeTypeError('A body stream must give chunks of type Uint8Array.')
    chunks[chunks.length] = value
    length += typedArrayLength(value)
  }
  const bytes = new SafeUint8Array(length)
  let offset = 0
  for (let index = 0; index < chunks.length; index++) {
    bytesSet(bytes, chunks[index]!, offset)
    offset += typedArrayLength(chunks[index])
  }
  return bytes
}
