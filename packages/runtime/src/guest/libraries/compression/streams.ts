import { type Bytes, bytesOf } from '../node/bytes.ts'
import { streams } from '../../web-api/streams.ts'
import { Brotli, type Codec, CodecError, Flate, FLUSHES, OPERATIONS } from './codec.ts'

interface Controller {
  enqueue(chunk: Bytes): void
}

interface Transformer {
  transform(chunk: unknown, controller: Controller): void
  flush(controller: Controller): void
}

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
function run(codec: Codec, input: Uint8Array, isLast: boolean, controller: Controller): void {
  // Both libraries know 0 as to go on; the end has another number in each.
  const flush = isLast ? (codec instanceof Brotli ? OPERATIONS.finish : FLUSHES.finish) : FLUSHES.none
  try {
    for (const piece of codec.run(input, flush)) controller.enqueue(piece)
  } catch (error) {
    if (error instanceof CodecError) throw new TypeError(error.message, { cause: error })
    throw error
  }
  if (codec.hasTrailer) throw new TypeError('There is something behind the end of the compressed text.')
}

function pairOf(codec: Codec): Pair {
  const transformer: Transformer = {
    transform(chunk, controller) {
      const bytes = bytesOf(chunk)
      if (bytes === undefined) throw new TypeError('A chunk is a buffer or a view of one.')
      run(codec, bytes, false, controller)
    },
    flush: (controller) => run(codec, new Uint8Array(0), true, controller),
  }
  return new (streams().TransformStream)(transformer)
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
