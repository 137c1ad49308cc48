/**
 * The Streams API, from web-streams-polyfill. Its module is evaluated when it is first needed, so that a context which has no use
 * for streams does not pay for them.
 */
type Streams = typeof import('web-streams-polyfill')
export type ReadableStream<T = unknown> = import('web-streams-polyfill').ReadableStream<T>

declare const require: (module: 'web-streams-polyfill') => Streams

let loaded: Streams | undefined

export function streams(): Streams {
  return (loaded ??= require('web-streams-polyfill'))
}

export const STREAM_CLASSES = [
  'ByteLengthQueuingStrategy',
  'CountQueuingStrategy',
  'ReadableByteStreamController',
  'ReadableStream',
  'ReadableStreamBYOBReader',
  'ReadableStreamBYOBRequest',
  'ReadableStreamDefaultController',
  'ReadableStreamDefaultReader',
  'TransformStream',
  'TransformStreamDefaultController',
  'WritableStream',
  'WritableStreamDefaultController',
  'WritableStreamDefaultWriter',
] as const satisfies readonly (keyof Streams)[]

/** Also true for a stream of another implementation, such as one that the function brought along. */
export function isReadableStream(value: object): value is ReadableStream<Uint8Array> {
  return typeof (value as { getReader?: unknown }).getReader === 'function'
}

/** Whether anything was read from a stream or it was canceled. */
export function isDisturbed(stream: ReadableStream): boolean {
  return Boolean((stream as unknown as { _disturbed?: boolean })._disturbed)
}

/** A stream that gives the bytes in one chunk. */
export function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new (streams().ReadableStream)<Uint8Array>({
    pull(controller) {
      if (bytes.length > 0) controller.enqueue(bytes)
      controller.close()
    },
  })
}

/** Reads a stream to its end. @throws TypeError if a chunk is not of bytes, or what the stream fails with */
export async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (!(value instanceof Uint8Array)) throw new TypeError('A body stream must give chunks of type Uint8Array.')
    chunks.push(value)
    length += value.length
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
