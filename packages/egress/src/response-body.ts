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

/** Where the bytes of a body come together, or pass through. */
export interface BodyTarget {
  /** @throws failure if it is more than may be */
  append(chunk: Uint8Array): void
  /** No more is wanted until it calls `onRoom`. */
  readonly isFull: boolean
  onRoom: (() => void) | undefined
  /** All that is sent has come, and may still be decompressed. */
  inputEnded(): void
  /** @param done called with the whole of it, or what was not passed on before */
  end(done: (body: Uint8Array) => void): void
}

/** Keeps the body as it is. */
export function plainSink(target: BodyTarget, { onRoom, onDone }: BodyEvents): BodySink {
  target.onRoom = onRoom
  return {
    write(chunk) {
      target.append(chunk)
      return !target.isFull
    },
    end() {
      target.inputEnded()
      target.end(onDone)
    },
    destroy() {},
  }
}

export interface DecodingOptions {
  readonly codings: readonly string[]
  /** Of what lies between two codings. */
  readonly limitBytes: number
  /** Of the body as it is sent, if that is kept as a whole. */
  readonly sentLimitBytes: number
}

/** Decompresses the body while it comes, so that what is too large once it is decompressed is not read to its end. */
export function decodingSink(
  { codings, limitBytes, sentLimitBytes }: DecodingOptions,
  target: BodyTarget,
  { onRoom, onDone, onFailed }: BodyEvents,
): BodySink {
  let entry: Transform | undefined
  let bytesIn = 0

  function build(firstByte: number | undefined): Transform {
    const collector = new Writable({
      highWaterMark: CHUNK_BYTES,
      write(chunk: Uint8Array, _encoding, done) {
        try {
          target.append(chunk)
        } catch (cause) {
          return done(cause as Error)
        }
        if (!target.isFull) return done()
        target.onRoom = () => {
          target.onRoom = undefined
          done()
        }
      },
    })
    const stages = createDecoders(codings, firstByte, limitBytes)
    const [first] = stages
    if (first === undefined) throw failure('undecodable')
    pipeline([...stages, collector], (cause) => {
      if (cause === null || cause === undefined) target.end(onDone)
      else onFailed(isFailure(cause) ? cause : failure('undecodable', cause))
    })
    return first.on('drain', onRoom)
  }

  return {
    write(chunk) {
      bytesIn += chunk.length
      if (bytesIn > sentLimitBytes) throw failure('response-too-large')
      entry ??= build(chunk[0])
      return entry.write(chunk)
    },
    end() {
      target.inputEnded()
      // An empty body is not decompressed.
      if (entry === undefined) target.end(onDone)
      else entry.end()
    },
    destroy: () => void entry?.destroy(),
  }
}

/** Keeps the whole of a body. */
export class WholeBody implements BodyTarget {
  readonly isFull = false
  onRoom: (() => void) | undefined
  readonly #buffer: BodyBuffer

  /** @param announcedBytes `content-length` of the response, if it is not compressed */
  constructor({ limitBytes, lease }: BodyOptions, tooLarge: FailureCode, announcedBytes = 0) {
    this.#buffer = new BodyBuffer(limitBytes, lease, tooLarge, announcedBytes)
  }

  append(chunk: Uint8Array): void {
    this.#buffer.append(chunk)
  }

  inputEnded(): void {}

  end(done: (body: Uint8Array) => void): void {
    done(this.#buffer.take())
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
  /** Gives back some of it. */
  shrink(bytes: number): void
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
 * Streams that undo codings, the last one first. Between them the limit is enforced: a body can be small at both ends and endless
 * between two codings.
 * @param firstByte of the body
 */
function createDecoders(codings: readonly string[], firstByte: number | undefined, limitBytes: number): Transform[] {
  return codings.toReversed().flatMap((coding, index) => {
    const decoder = DECODERS.get(coding)?.(index === 0 ? firstByte : undefined)
    if (decoder === undefined) return []
    return index === codings.length - 1 ? [decoder] : [decoder, limiter(limitBytes)]
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
