import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib'
import type { HeaderList } from '@carpool/core'
import { failure } from './failure.ts'

type Decoder = (body: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

const inflateZlib: Decoder = promisify(inflate)
const inflateBare: Decoder = promisify(inflateRaw)
const gunzipAsync: Decoder = promisify(gunzip)

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['gzip', gunzipAsync],
  ['x-gzip', gunzipAsync],
  // By the standard it has a zlib header; some servers leave that out.
  ['deflate', (body, options) => (((body[0] ?? 0) & 0x0f) === 8 ? inflateZlib : inflateBare)(body, options)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
])

const MAX_CODINGS = 5

export interface DecodedBody {
  readonly headers: HeaderList
  readonly body: Uint8Array
}

/**
 * Undoes the content codings of a response, and takes away the headers that described them. A coding that is not known stays.
 * @throws an error for `describeFailure` if a step is larger than the limit, or the body is not what the headers say
 */
export async function decompress(headers: HeaderList, body: Uint8Array, limitBytes: number): Promise<DecodedBody> {
  const codings = headers
    .filter(([name]) => name === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  if (codings.length === 0 || body.length === 0) return { headers, body }
  if (codings.length > MAX_CODINGS) throw failure('undecodable')
  const decoders = codings.map((coding) => DECODERS.get(coding))
  if (decoders.includes(undefined)) return { headers, body }
  let decoded = body
  for (const decode of decoders.toReversed()) {
    decoded = (await decode?.(decoded, { maxOutputLength: limitBytes }).catch(explain)) ?? decoded
  }
  return { headers: headers.filter(([name]) => name !== 'content-encoding' && name !== 'content-length'), body: decoded }
}

function explain(cause: NodeJS.ErrnoException): never {
  throw failure(cause.code === 'ERR_BUFFER_TOO_LARGE' ? 'response-too-large' : 'undecodable', cause)
}
