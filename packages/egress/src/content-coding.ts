import { Transform, type TransformCallback } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'
import type { HeaderList } from '@carpool/core'
import { failure } from './failure.ts'

/** Largest window, as a power of 2: RFC 9659 has servers stay at 8 MiB, and a larger one only takes memory. */
const ZSTD_WINDOW_LOG_MAX = 23
const CHUNK_BYTES = 64 * 1024

type CreateDecoder = (firstByte: number | undefined) => Transform

/** By name; the first byte of the body tells what a name leaves open. */
const DECODERS: ReadonlyMap<string, CreateDecoder> = new Map<string, CreateDecoder>([
  ['gzip', () => createGunzip({ chunkSize: CHUNK_BYTES })],
  ['x-gzip', () => createGunzip({ chunkSize: CHUNK_BYTES })],
  // By the standard it has a zlib header; some servers leave that out.
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
 * The content codings to undo, in the order in which they were applied. Empty if there is none, or one that is not known: then the body stays as
 * it is.
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

/** What of the headers is still true once the codings are undone. */
export function decodedHeaders(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length')
}

/**
 * Streams that undo codings, the last one first; between two of them stands one that ends it all when a step gives more than the limit, as a body
 * can be small at both ends and endless between.
 * @param firstByte of the body
 */
export function createDecoders(codings: readonly string[], firstByte: number | undefined, limitBytes: number): Transform[] {
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
