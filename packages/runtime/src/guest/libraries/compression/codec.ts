import type { Bytes } from '../node/bytes.ts'
import { type Handle, natives, unpackRun } from './natives.ts'

/** zlib's numbers. */
export const FLUSHES = { none: 0, partial: 1, sync: 2, full: 3, finish: 4, block: 5 } as const
const STATUS = { streamEnd: 1, needsDictionary: 2, streamError: -2, bufferError: -5 } as const
const CODES: Readonly<Record<number, string>> = {
  2: 'Z_NEED_DICT',
  [-2]: 'Z_STREAM_ERROR',
  [-3]: 'Z_DATA_ERROR',
  [-5]: 'Z_BUF_ERROR',
}
/** By so much the status of a run is above zlib's. */
const STATUS_OFFSET = 6

/** The text cannot be decompressed, or not all of it was there. */
export class CodecError extends Error {
  readonly code: string
  readonly errno: number

  constructor(message: string, code: string, errno: number) {
    super(message)
    this.name = 'Error'
    this.code = code
    this.errno = errno
  }
}

export interface Codec {
  /** All of a decompressed text was there. */
  readonly hasEnded: boolean
  /** Whether something was left behind the end of the text that is no text. */
  readonly hasTrailer: boolean
  /**
   * Takes input and gives what comes of it, piece by piece, each made when it is asked for. The last input ends the text. Only
   * when all has been asked for may the next input come.
   * @param most bytes of a piece, which never has more than 64 KiB
   * @throws CodecError; RangeError if the result does not fit into the memory limit
   */
  run(input: Uint8Array, flush: number, most?: number): Generator<Bytes, void>
  reset(): void
}

const OUTPUT_BYTES = 64 * 1024
/** Where a call writes, before it is known how much that is. What it wrote is taken away before anything else runs. */
let output: Uint8Array<ArrayBuffer> | undefined

function room(most: number): Uint8Array<ArrayBuffer> {
  output ??= new Uint8Array(OUTPUT_BYTES)
  return most < OUTPUT_BYTES ? output.subarray(0, most) : output
}

export interface FlateOptions {
  readonly deflates: boolean
  readonly level?: number
  /** As zlib has it: negative without a header, 16 more for gzip, 32 more for either. */
  readonly windowBits: number
  readonly memLevel?: number
  readonly strategy?: number
  readonly dictionary?: Uint8Array
  /** Whether another gzip text may follow the first. */
  readonly isChained?: boolean
}

const GZIP_MAGIC = 0x1f

export class Flate implements Codec {
  readonly #options: FlateOptions
  readonly #handle: Handle
  /** The first byte of the text; -1 before there is one. */
  #first = -1
  hasEnded = false
  hasTrailer = false

  constructor(options: FlateOptions) {
    const { deflates, level = -1, windowBits, memLevel = 8, strategy = 0, dictionary } = options
    this.#options = options
    this.#handle = natives.flateNew(deflates, level, windowBits, memLevel, strategy)
    // A text without a header cannot say that it needs one.
    if (dictionary !== undefined && (deflates || windowBits < 0)) this.#setDictionary(dictionary)
  }

  #setDictionary(dictionary: Uint8Array): void {
    const status = natives.flateDictionary(this.#handle, dictionary)
    if (status !== 0) throw new CodecError('Failed to set dictionary', CODES[status] ?? 'Z_STREAM_ERROR', status)
  }

  run(input: Uint8Array, flush: number, most = OUTPUT_BYTES): Generator<Bytes, void> {
    return this.#options.deflates ? this.#deflate(input, flush, room(most)) : this.#inflate(input, flush, room(most))
  }

  *#deflate(input: Uint8Array, flush: number, to: Bytes): Generator<Bytes, void> {
    for (let at = 0; ; ) {
      const run = unpackRun(natives.flateRun(this.#handle, input, at, input.length, to, 0, flush))
      const status = run.status - STATUS_OFFSET
      at += run.taken
      if (run.given > 0) yield to.slice(0, run.given)
      if (status === STATUS.streamEnd) return
      if (status < 0 && status !== STATUS.bufferError) throw this.#error(status)
      const isFull = run.given === to.length
      if (at === input.length && !isFull && flush !== FLUSHES.finish) return
    }
  }

  *#inflate(input: Uint8Array, flush: number, to: Bytes): Generator<Bytes, void> {
    if (this.#first < 0) this.#first = input[0] ?? -1
    for (let at = 0; ; ) {
      if (this.hasEnded && !this.#goesOn(input, at)) return
      const run = unpackRun(natives.flateRun(this.#handle, input, at, input.length, to, 0, FLUSHES.sync))
      const status = run.status - STATUS_OFFSET
      at += run.taken
      if (run.given > 0) yield to.slice(0, run.given)
      if (status === STATUS.streamEnd) this.hasEnded = true
      else if (status === STATUS.needsDictionary) this.#answerDictionary()
      else if (status < 0 && status !== STATUS.bufferError) throw this.#error(status)
      else if (at === input.length && run.given < to.length) break
    }
    if (flush === FLUSHES.finish && !this.hasEnded) throw endsEarly()
  }

  /** Whether another text follows one that has ended. As in Node.js, one of gzip, and anything but zeroes is taken for it. */
  #goesOn(input: Uint8Array, at: number): boolean {
    if (at === input.length) return false
    if (this.#options.isChained === true && this.#first === GZIP_MAGIC && input[at] !== 0) {
      this.reset()
      return true
    }
    this.hasTrailer = true
    return false
  }

  #answerDictionary(): void {
    const { dictionary } = this.#options
    if (dictionary === undefined) throw new CodecError('Missing dictionary', 'Z_NEED_DICT', STATUS.needsDictionary)
    if (natives.flateDictionary(this.#handle, dictionary) !== 0) {
      throw new CodecError('Bad dictionary', 'Z_NEED_DICT', STATUS.needsDictionary)
    }
  }

  #error(status: number): CodecError {
    return new CodecError(natives.flateMessage(this.#handle) ?? 'Zlib error', CODES[status] ?? 'Z_STREAM_ERROR', status)
  }

  params(level: number, strategy: number): void {
    natives.flateParams(this.#handle, level, strategy)
  }

  reset(): void {
    this.hasEnded = false
    natives.flateReset(this.#handle)
    const { dictionary, deflates, windowBits } = this.#options
    if (dictionary !== undefined && (deflates || windowBits < 0)) this.#setDictionary(dictionary)
  }
}

function endsEarly(): CodecError {
  return new CodecError('unexpected end of file', 'Z_BUF_ERROR', STATUS.bufferError)
}

/** brotli's numbers. */
export const OPERATIONS = { process: 0, flush: 1, finish: 2 } as const
const RESULT = { goesOn: 0, finished: 1, moreOutput: 2, failed: 3 } as const

export class Brotli implements Codec {
  readonly #encodes: boolean
  readonly #parameters: Uint32Array
  #handle: Handle
  hasEnded = false
  hasTrailer = false

  /** @param parameters numbers in pairs, each a parameter and its value */
  constructor(encodes: boolean, parameters: readonly number[] = []) {
    this.#encodes = encodes
    this.#parameters = Uint32Array.from(parameters)
    this.#handle = this.#make()
  }

  #make(): Handle {
    const made = natives.brotliNew(this.#encodes, this.#parameters)
    if (made === undefined) throw new CodecError('Initialization failed', 'ERR_ZLIB_INITIALIZATION_FAILED', -1)
    return made
  }

  *run(input: Uint8Array, operation: number, most = OUTPUT_BYTES): Generator<Bytes, void> {
    const to = room(most)
    for (let at = 0; ; ) {
      if (this.hasEnded) {
        this.hasTrailer ||= at < input.length
        return
      }
      const run = unpackRun(natives.brotliRun(this.#handle, input, at, input.length, to, 0, operation))
      at += run.taken
      if (run.given > 0) yield to.slice(0, run.given)
      if (run.status === RESULT.failed) throw this.#error()
      if (run.status === RESULT.finished) this.hasEnded = true
      else if (at === input.length && run.status === RESULT.goesOn && !(this.#encodes && operation === OPERATIONS.finish)) break
    }
    if (!this.#encodes && operation === OPERATIONS.finish && !this.hasEnded) throw endsEarly()
  }

  #error(): CodecError {
    if (this.#encodes) return new CodecError('Compression failed', 'ERR_BROTLI_COMPRESSION_FAILED', -1)
    return new CodecError('Decompression failed', `ERR_${natives.brotliMessage(this.#handle) ?? 'BROTLI'}`, -1)
  }

  reset(): void {
    this.hasEnded = this.hasTrailer = false
    this.#handle = this.#make()
  }
}
