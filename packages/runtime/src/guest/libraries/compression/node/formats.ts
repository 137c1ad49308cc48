import { type Bytes, concat } from '../../node/bytes.ts'
import { invalidType, nodeError } from '../../node/errors.ts'
import { constants } from './constants.ts'
import { Brotli, type Codec, Flate, type FlateOptions, FLUSHES, OPERATIONS } from '../codec.ts'
import { toBytes } from '../../node/data.ts'

export interface ZlibOptions {
  readonly flush?: number
  readonly finishFlush?: number
  readonly chunkSize?: number
  readonly windowBits?: number
  readonly level?: number
  readonly memLevel?: number
  readonly strategy?: number
  readonly dictionary?: unknown
  readonly info?: boolean
  readonly maxOutputLength?: number
  readonly params?: Readonly<Record<string, number | boolean>>
}

export interface Format {
  /** What the stream class is called. */
  readonly name: string
  /** What the methods are called: `gzip`, `gzipSync`, `createGzip`. */
  readonly method: string
  readonly goesOn: number
  readonly flushes: number
  readonly finishes: number
  /** @param size of the whole text, where that is known */
  codec(options: ZlibOptions, size?: number): Codec
}

/** @throws TypeError, RangeError */
function within(
  options: ZlibOptions,
  name: 'windowBits' | 'level' | 'memLevel' | 'strategy',
  min: number,
  max: number,
  usual: number,
): number {
  const value = options[name]
  if (value === undefined || Number.isNaN(value)) return usual
  if (typeof value !== 'number') throw invalidType(`options.${name}`, 'of type number', value)
  if (value < min || value > max) {
    const message = `The value of "options.${name}" is out of range. It must be >= ${min} and <= ${max}. Received ${value}`
    throw nodeError('ERR_OUT_OF_RANGE', message, RangeError)
  }
  return value
}

/** Most bytes of what a stream gives at once. @throws TypeError, RangeError */
export function pieceBytes({ chunkSize = constants.Z_DEFAULT_CHUNK }: ZlibOptions): number {
  if (typeof chunkSize !== 'number') throw invalidType('options.chunkSize', 'of type number', chunkSize)
  if (chunkSize >= constants.Z_MIN_CHUNK) return chunkSize
  const message = `The value of "options.chunkSize" is out of range. It must be >= ${constants.Z_MIN_CHUNK}. Received ${chunkSize}`
  throw nodeError('ERR_OUT_OF_RANGE', message, RangeError)
}

interface FlateKind {
  readonly name: string
  readonly deflates: boolean
  readonly windowBits: (bits: number) => number
  readonly isChained?: boolean
}

function flate({ name, deflates, windowBits, isChained = false }: FlateKind): Format {
  return {
    name,
    method: name[0]!.toLowerCase() + name.slice(1),
    goesOn: FLUSHES.none,
    flushes: FLUSHES.full,
    finishes: FLUSHES.finish,
    codec(options) {
      // Of 8 bits zlib makes 9 where it compresses.
      const bits = within(options, 'windowBits', deflates ? 8 : 0, 15, 15)
      const made: FlateOptions = {
        deflates,
        isChained,
        windowBits: windowBits(deflates && bits === 8 ? 9 : bits),
        level: within(options, 'level', -1, 9, -1),
        memLevel: within(options, 'memLevel', 1, 9, 8),
        strategy: within(options, 'strategy', 0, 4, 0),
        ...(options.dictionary !== undefined && { dictionary: toBytes(options.dictionary, 'options.dictionary') }),
      }
      return new Flate(made)
    },
  }
}

const WINDOW = 2
const LEAST_WINDOW = 16
const USUAL_WINDOW = 22

/** The parameters in pairs. With a window that is no larger than the text brotli takes much less memory, and loses nothing. */
function brotliParameters({ params = {} }: ZlibOptions, encodes: boolean, size?: number): number[] {
  const pairs = Object.entries(params).flatMap(([key, value]) => {
    const parameter = Number(key)
    if (!Number.isInteger(parameter) || parameter < 0 || parameter > 9) {
      throw nodeError('ERR_BROTLI_INVALID_PARAM', `${key} is not a valid Brotli parameter`, RangeError)
    }
    if (typeof value !== 'number' && typeof value !== 'boolean') throw invalidType('options.params[key]', 'of type number', value)
    return [parameter, Number(value)]
  })
  if (!encodes || size === undefined || String(WINDOW) in params) return pairs
  const needed = Math.ceil(Math.log2(size + 2 ** 10))
  return [...pairs, WINDOW, Math.min(USUAL_WINDOW, Math.max(LEAST_WINDOW, needed))]
}

function brotli(name: string, encodes: boolean): Format {
  return {
    name,
    method: name[0]!.toLowerCase() + name.slice(1),
    goesOn: OPERATIONS.process,
    flushes: OPERATIONS.flush,
    finishes: OPERATIONS.finish,
    codec: (options, size) => new Brotli(encodes, brotliParameters(options, encodes, size)),
  }
}

export const FORMATS: readonly Format[] = [
  flate({ name: 'Deflate', deflates: true, windowBits: (bits) => bits }),
  flate({ name: 'Inflate', deflates: false, windowBits: (bits) => bits }),
  flate({ name: 'Gzip', deflates: true, windowBits: (bits) => bits + 16 }),
  flate({ name: 'Gunzip', deflates: false, windowBits: (bits) => bits + 16, isChained: true }),
  flate({ name: 'DeflateRaw', deflates: true, windowBits: (bits) => -bits }),
  flate({ name: 'InflateRaw', deflates: false, windowBits: (bits) => -bits }),
  flate({ name: 'Unzip', deflates: false, windowBits: (bits) => bits + 32, isChained: true }),
  brotli('BrotliCompress', true),
  brotli('BrotliDecompress', false),
]

/** What comes of a whole text. @throws Error */
export function convert(format: Format, input: Bytes, options: ZlibOptions): Bytes {
  const codec = format.codec(options, input.length)
  const most = options.maxOutputLength ?? Infinity
  const pieces: Bytes[] = []
  let size = 0
  for (const piece of codec.run(input, options.finishFlush ?? format.finishes)) {
    size += piece.length
    if (size > most) {
      throw nodeError('ERR_BUFFER_TOO_LARGE', `Cannot create a Buffer larger than ${most} bytes`, RangeError)
    }
    pieces.push(piece)
  }
  return pieces.length === 1 ? pieces[0]! : concat(...pieces)
}
