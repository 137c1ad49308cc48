import { later, toBuffer, toBytes } from '../../node/data.ts'
import { connectEnvironment, type Environment, type NodeBuffer } from '../../node/environment.ts'
import { streamAtUse } from '../../node/lazy-stream.ts'
import { Flate } from '../codec.ts'
import { CRC_SLICE, natives } from '../natives.ts'
import { codes, constants } from './constants.ts'
import { convert, type Format, FORMATS, pieceBytes, type ZlibOptions } from './formats.ts'

declare const queueMicrotask: (task: () => void) => void

type Done = (error?: Error | null) => void

/** What a stream has that these classes use. */
interface Stream {
  readonly writableEnded: boolean
  readonly writableFinished: boolean
  push(chunk: unknown): boolean
  _read: (this: unknown, size: number) => void
  once(event: string, listener: () => void): void
  destroy(): void
  write(chunk: unknown, callback: () => void): void
}

const FLUSHING = Symbol('flushing')

/** A stream class of a format. It becomes a stream of the bundle's own `node:stream` when the first is made. */
function streamClass(format: Format) {
  const { name } = format
  const { [name]: Class } = {
    [name]: class {
      readonly #codec
      readonly #options: ZlibOptions
      readonly #pieceBytes: number
      bytesWritten = 0
      #flush: number

      constructor(options: ZlibOptions = {}) {
        this.#options = options
        this.#codec = format.codec(options)
        this.#pieceBytes = pieceBytes(options)
        this.#flush = options.flush ?? format.goesOn
        begin(this)
      }

      /** @internal */
      run(input: Uint8Array, flush: number, done: Done): void {
        this.bytesWritten += input.length
        this.#give(this.#codec.run(input, flush, this.#pieceBytes), done)
      }

      /** Goes on for as long as the stream takes more, and then when it is read. Returns whether that was all. */
      #give(pieces: Iterator<Uint8Array<ArrayBuffer>, void>, done: Done): boolean {
        const stream = this as unknown as Stream
        let failure: Error | undefined
        try {
          for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
            if (stream.push(toBuffer(next.value))) continue
            const { _read } = stream
            stream._read = (size) => {
              stream._read = _read
              if (this.#give(pieces, done)) stream._read(size)
            }
            return false
          }
        } catch (error) {
          failure = error as Error
        }
        done(failure)
        return true
      }

      /** @internal */
      streamOptions(): object {
        const { finishFlush } = this.#options
        return {
          ...this.#options,
          transform: (chunk: unknown, encoding: unknown, done: Done) => {
            const kind = (chunk as { [FLUSHING]?: number })[FLUSHING]
            if (kind !== undefined) return this.run(new Uint8Array(0), kind, done)
            this.run(toBytes(chunk, 'chunk', encoding), this.#flush, done)
          },
          flush: (done: Done) => this.run(new Uint8Array(0), finishFlush ?? format.finishes, done),
          final: undefined,
        }
      }

      flush(kind?: unknown, callback?: () => void): void {
        const [wanted, told] =
          typeof kind === 'function' ? [undefined, kind as () => void] : [kind as number | undefined, callback]
        const stream = this as unknown as Stream
        if (!stream.writableEnded) {
          const mark = Object.assign(toBuffer(new Uint8Array(0)), { [FLUSHING]: wanted ?? format.flushes })
          stream.write(mark, told ?? (() => {}))
        } else if (told !== undefined) {
          if (stream.writableFinished) queueMicrotask(told)
          else stream.once('end', told)
        }
      }

      params(level: number, strategy: number, callback: () => void): void {
        this.flush(constants.Z_SYNC_FLUSH, () => {
          if (this.#codec instanceof Flate) this.#codec.params(level, strategy)
          callback()
        })
      }

      reset(): void {
        this.#codec.reset()
      }

      close(callback?: () => void): void {
        const stream = this as unknown as Stream
        if (callback !== undefined) stream.once('close', callback)
        stream.destroy()
      }
    },
  }
  const begin = streamAtUse(Class!, 'Transform', (self: InstanceType<NonNullable<typeof Class>>) => self.streamOptions())
  return Class!
}

function methodsOf(format: Format): Record<string, unknown> {
  const Class = streamClass(format)
  const { method, name } = format
  const sync = (given: unknown, options: ZlibOptions = {}): NodeBuffer | object => {
    const input = toBytes(given, 'buffer')
    const buffer = toBuffer(convert(format, input, options))
    if (options.info !== true) return buffer
    return { buffer, engine: Object.assign(new Class(options), { bytesWritten: input.length }) }
  }
  return {
    [name]: Class,
    [`create${name}`]: (options?: ZlibOptions) => new Class(options),
    [`${method}Sync`]: sync,
    [method]: (buffer: unknown, options: unknown, callback?: unknown) => {
      const isShort = typeof options === 'function'
      const input = toBytes(buffer, 'buffer')
      later(isShort ? options : callback, () => sync(input, isShort ? {} : (options as ZlibOptions | undefined)))
    },
  }
}

function crc32(data: unknown, value = 0): number {
  const bytes = toBytes(data, 'data')
  let sum = value
  for (let at = 0; at < bytes.length; at += CRC_SLICE) sum = natives.crc(bytes, at, sum)
  return sum
}

/** `node:zlib`, for a function whose bundle has the other modules. */
export function makeNodeModule(environment: Environment): object {
  connectEnvironment(environment)
  return { ...Object.assign({}, ...FORMATS.map(methodsOf)), codes, constants, crc32, ...constants }
}
