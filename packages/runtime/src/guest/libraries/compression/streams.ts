import { type Bytes, bytesOf } from '../node/bytes.ts'
import { Brotli, type Codec, CodecError, Flate, FLUSHES, OPERATIONS } from './codec.ts'
import { pacedPair } from './paced.ts'

interface Pair {
  readonly readable: object
  readonly writable: object
}

const FORMATS: Readonly<Record<string, (compresses: boolean) => Codec>> = {
  'deflate': (deflates) => new Flate({ deflates, windowBits: 15 }),
  'deflate-raw': (deflates) => new Flate({ deflates, windowBits: -15 }),
  'gzip': (deflates) => new Flate({ deflates, windowBits: 15 + 16 }),
  'brotli': (encodes) => new Brotli(encodes),
}

function codecOf(format: unknown, compresses: boolean): Codec {
  const name = String(format)
  const make = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined
  if (make === undefined) throw new TypeError(`There is no compression format '${name}'.`)
  return make(compresses)
}

/** What the standard has thrown, whatever is wrong with the text. */
function* run(codec: Codec, input: Uint8Array, isLast: boolean): Generator<Bytes, void> {
  // Both libraries know 0 as to go on; the end has another number in each.
  const flush = isLast ? (codec instanceof Brotli ? OPERATIONS.finish : FLUSHES.finish) : FLUSHES.none
  try {
    yield* codec.run(input, flush)
  } catch (error) {
    if (error instanceof CodecError) throw new TypeError(error.message, { cause: error })
    throw error
  }
  if (codec.hasTrailer) throw new TypeError('There is something behind the end of the compressed text.')
}

function pairOf(codec: Codec): Pair {
  return pacedPair((chunk) => {
    if (chunk === undefined) return run(codec, new Uint8Array(0), true)
    const bytes = bytesOf(chunk.value)
    if (bytes === undefined) throw new TypeError('A chunk is a buffer or a view of one.')
    return run(codec, bytes, false)
  })
}

/** `CompressionStream` of the Compression standard. The work is done as chunks go in, on the isolate's own thread. */
export class CompressionStream {
  readonly #pair: Pair

  constructor(format: unknown) {
    if (arguments.length === 0) throw new TypeError('CompressionStream needs a format.')
    this.#pair = pairOf(codecOf(format, true))
  }

  get readable(): object {
    return this.#pair.readable
  }

  get writable(): object {
    return this.#pair.writable
  }
}

export class DecompressionStream {
  readonly #pair: Pair

  constructor(format: unknown) {
    if (arguments.length === 0) throw new TypeError('DecompressionStream needs a format.')
    this.#pair = pairOf(codecOf(format, false))
  }

  get readable(): object {
    return this.#pair.readable
  }

  get writable(): object {
    return this.#pair.writable
  }
}
