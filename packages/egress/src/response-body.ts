import { pipeline, Writable, type Transform } from 'node:stream'
import { BodyBuffer, type MemoryLease } from './body-buffer.ts'
import { createDecoders } from './content-coding.ts'
import { failure, isFailure } from './failure.ts'

/** Takes the body of a response as it comes. */
export interface BodySink {
  /** False: no more is wanted until `onRoom` is called. @throws failure if it is more than may be */
  write(chunk: Uint8Array): boolean
  /** The body has come to its end; `onDone` is called with the whole of it. */
  end(): void
  /** The body is not wanted any more. */
  destroy(): void
}

export interface BodyEvents {
  readonly onRoom: () => void
  readonly onDone: (body: Uint8Array) => void
  readonly onFailed: (cause: Error) => void
}

export interface BodyOptions {
  readonly limitBytes: number
  readonly lease: MemoryLease
}

/** Keeps the body as it is. */
export function plainSink({ limitBytes, lease }: BodyOptions, announcedBytes: number, { onDone }: BodyEvents): BodySink {
  const buffer = new BodyBuffer(limitBytes, lease, 'response-too-large', announcedBytes)
  return {
    write(chunk) {
      buffer.append(chunk)
      return true
    },
    end: () => onDone(buffer.take()),
    destroy() {},
  }
}

/** Decompresses the body while it comes, so that what is too large once it is decompressed is not read to its end. */
export function decodingSink(
  codings: readonly string[],
  { limitBytes, lease }: BodyOptions,
  { onRoom, onDone, onFailed }: BodyEvents,
): BodySink {
  const buffer = new BodyBuffer(limitBytes, lease, 'decompressed-too-large')
  let entry: Transform | undefined
  let bytesIn = 0

  function build(firstByte: number | undefined): Transform {
    const collector = new Writable({
      write(chunk: Uint8Array, _encoding, done) {
        try {
          buffer.append(chunk)
          done()
        } catch (cause) {
          done(cause as Error)
        }
      },
    })
    const stages = createDecoders(codings, firstByte, limitBytes)
    const [first] = stages
    if (first === undefined) throw failure('undecodable')
    pipeline([...stages, collector], (cause) => {
      if (cause === null || cause === undefined) onDone(buffer.take())
      else onFailed(isFailure(cause) ? cause : failure('undecodable', cause))
    })
    return first.on('drain', onRoom)
  }

  return {
    write(chunk) {
      bytesIn += chunk.length
      if (bytesIn > limitBytes) throw failure('response-too-large')
      entry ??= build(chunk[0])
      return entry.write(chunk)
    },
    end() {
      // A body without a byte is none, and not a compressed one.
      if (entry === undefined) onDone(buffer.take())
      else entry.end()
    },
    destroy: () => void entry?.destroy(),
  }
}

/** Takes no notice of the body: that of a redirect is read only so that the connection can be used again. */
export function discardingSink({ onDone }: Pick<BodyEvents, 'onDone'>): BodySink {
  let bytesIn = 0
  return {
    write(chunk) {
      bytesIn += chunk.length
      if (bytesIn > MAX_DISCARDED_BYTES) onDone(NO_BODY)
      return true
    },
    end: () => onDone(NO_BODY),
    destroy() {},
  }
}

/** From here on a new connection is cheaper. */
const MAX_DISCARDED_BYTES = 16 * 1024
const NO_BODY = new Uint8Array()
