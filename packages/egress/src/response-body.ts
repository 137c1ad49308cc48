import { pipeline, Transform, Writable, type TransformCallback } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'
import type { HeaderList } from '@carpool/core'
import { failure, isFailure, type FailureCode } from './failure.ts'

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
      // An empty body is not decompressed.
      if (entry === undefined) onDone(buffer.take())
      else entry.end()
    },
    destroy: () => void entry?.destroy(),
  }
}

/** Discards the body: that of a redirect is read only so that the connection can be used again. */
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

/** Above it a new connection is cheaper. */
const MAX_DISCARDED_BYTES = 16 * 1024
const NO_BODY = new Uint8Array()

/** Memory that a fetch holds, out of the pool of all fetches. */
export interface MemoryLease {
  /** Takes more; false if the share is used up. */
  grow(bytes: number): boolean
}

const FIRST_CAPACITY_BYTES = 4 * 1024
/** Most memory that is allocated for a length which was only announced. */
const MAX_TRUSTED_BYTES = 128 * 1024

/** Joins chunks in memory that grows with them: chunks of one byte take one byte. */
class BodyBuffer {
  readonly #limitBytes: number
  readonly #lease: MemoryLease
  readonly #tooLarge: FailureCode
  readonly #firstBytes: number
  #bytes = new Uint8Array(0)
  #length = 0

  /** @param announcedBytes `content-length` of the response */
  constructor(limitBytes: number, lease: MemoryLease, tooLarge: FailureCode, announcedBytes = 0) {
    this.#firstBytes = Math.max(FIRST_CAPACITY_BYTES, Math.min(announcedBytes, MAX_TRUSTED_BYTES))
    this.#limitBytes = limitBytes
    this.#lease = lease
    this.#tooLarge = tooLarge
  }

  /** @throws failure if it is larger than the limit, or there is no memory for it */
  append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length
    if (length > this.#limitBytes) throw failure(this.#tooLarge)
    if (length > this.#bytes.length) this.#grow(length)
    this.#bytes.set(chunk, this.#length)
    this.#length = length
  }

  /** What it holds, in memory of its own. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = new Uint8Array(this.#bytes.buffer.transfer(this.#length))
    this.#bytes = new Uint8Array(0)
    this.#length = 0
    return taken
  }

  #grow(length: number): void {
    const capacity = Math.min(this.#limitBytes, Math.max(length, this.#firstBytes, this.#bytes.length * 2))
    if (!this.#lease.grow(capacity - this.#bytes.length)) throw failure('memory-full')
    this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(capacity))
  }
}

/** Largest window, as a power of 2: RFC 9659 has servers stay at 8 MiB, and a larger one only takes memory. */
const ZSTD_WINDOW_LOG_MAX = 23
const CHUNK_BYTES = 64 * 1024

type CreateDecoder = (firstByte: number | undefined) => Transform

/** By name. */
const DECODERS: ReadonlyMap<string, CreateDecoder> = new Map<string, CreateDecoder>([
  ['gzip', () => createGunzip({ chunkSize: CHUNK_BYTES })],
  ['x-gzip', () => createGunzip({ chunkSize: CHUNK_BYTES })],
  // By the standard it has a zlib header; some servers leave that out, which the first byte shows.
  [
    'deflate',
    (firstByte) =>
      firstByte === undefined || (firstByte & 0x0f) === 8
        ? createInflate({ chunkSize: CHUNK_BYTES })
        : createInflateRaw({ chunkSize: CHUNK_BYTES }),
  ],
  ['br', () => createBrotliDecompress({ chunkSize: CHUNK_BYTES })],
  [
    'zstd',
    () => createZstdDecompress({ chunkSize: CHUNK_BYTES, params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } }),
  ],
])

/**
 * The content codings to undo, in the order in which they were applied. Empty if one is not known: then the body stays as it is.
 * @throws failure `too-many-codings`
 */
export function contentCodings(headers: HeaderList, maxCodings: number): string[] {
  const codings = headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  if (codings.length > maxCodings) throw failure('too-many-codings')
  return codings.every((coding) => DECODERS.has(coding)) ? codings : []
}

/** The headers that are still true once the codings are undone. */
export function decodedHeaders(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length')
}

/**
 * Streams that undo codings, the last one first. Each is followed by one that enforces the limit: a body can be small at both
 * ends and endless between two codings.
 * @param firstByte of the body
 */
function createDecoders(codings: readonly string[], firstByte: number | undefined, limitBytes: number): Transform[] {
  return codings.toReversed().flatMap((coding, index) => {
    const decoder = DECODERS.get(coding)?.(index === 0 ? firstByte : undefined)
    return decoder === undefined ? [] : [decoder, limiter(limitBytes)]
  })
}

function limiter(limitBytes: number): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Uint8Array, _encoding: BufferEncoding, done: TransformCallback) {
      bytes += chunk.length
      if (bytes > limitBytes) done(failure('decompressed-too-large'))
      else done(null, chunk)
    },
  })
}
