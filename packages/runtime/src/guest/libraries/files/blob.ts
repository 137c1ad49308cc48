import { decodeUtf8, encodeUtf8, stripBom } from '../../web-api/encoding.ts'
import { type ReadableStream, streams } from '../../web-api/streams.ts'
import { bytesOf, toText } from '../../language/values.ts'
import { asInterfaces, optionsOf } from '../interfaces.ts'

export let isBlob: (value: unknown) => value is Blob
/** A blob of bytes that nobody changes any more, of a type that is used as it is. */
export let blobOf: (bytes: Uint8Array, type: string) => Blob
/** The bytes of a blob, not copied. Do not change them. */
export let bytesOfBlob: (blob: Blob) => Uint8Array
/** Its type, whatever user code has put on the object in place of that. */
export let typeOfBlob: (blob: Blob) => string
export let copyBlob: (blob: Blob) => Blob
export let isFile: (value: unknown) => value is File
/** The blob as a file of a name; a file that has the name is given back as it is. */
export let fileOf: (blob: Blob, name: string | undefined) => File

interface BlobOptions {
  readonly type?: unknown
  readonly endings?: unknown
}

/** Bytes of a chunk of a blob's stream. */
const CHUNK_BYTES = 65_536
/** Proves to the constructor that its parts are the bytes of a blob. */
const BYTES = Symbol('bytes')

export class Blob {
  readonly #bytes: Uint8Array
  readonly #type: string

  static {
    isBlob = (value): value is Blob => typeof value === 'object' && value !== null && #bytes in value
    blobOf = (bytes, type) => new Blob(bytes, BYTES, type)
    bytesOfBlob = (blob) => blob.#bytes
    typeOfBlob = (blob) => blob.#type
  }

  constructor(parts?: unknown, options?: unknown, type?: string) {
    if (options === BYTES) {
      this.#bytes = parts as Uint8Array
      this.#type = type!
      return
    }
    const given = partsOf(parts)
    const { endings = 'transparent', type: ofType = '' } = optionsOf<BlobOptions>(options as BlobOptions, 'The options of a Blob')
    const ending = toText(endings)
    if (ending !== 'transparent' && ending !== 'native')
      throw new TypeError(`endings must be transparent or native, not ${ending}.`)
    this.#type = typeOf(toText(ofType))
    this.#bytes = joined(given, ending === 'native')
  }

  get size(): number {
    return this.#bytes.length
  }

  get type(): string {
    return this.#type
  }

  slice(start?: unknown, end?: unknown, type: unknown = ''): Blob {
    const size = this.#bytes.length
    const from = position(start, 0, size)
    return blobOf(this.#bytes.subarray(from, Math.max(from, position(end, size, size))), typeOf(toText(type)))
  }

  async text(): Promise<string> {
    return stripBom(decodeUtf8(this.#bytes))
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#bytes.slice().buffer
  }

  async bytes(): Promise<Uint8Array> {
    return this.#bytes.slice()
  }

  stream(): ReadableStream<Uint8Array> {
    const bytes = this.#bytes
    let offset = 0
    return new (streams().ReadableStream)<Uint8Array>({
      type: 'bytes',
      pull(controller) {
        const chunk = bytes.slice(offset, offset + CHUNK_BYTES)
        offset += chunk.length
        if (chunk.length > 0) controller.enqueue(chunk)
        if (offset < bytes.length) return
        controller.close()
        controller.byobRequest?.respond(0)
      },
    })
  }
}

interface FileOptions extends BlobOptions {
  readonly lastModified?: unknown
}

export class File extends Blob {
  readonly #name: string
  readonly #lastModified: number

  static {
    isFile = (value): value is File => typeof value === 'object' && value !== null && #name in value
    fileOf = (blob, name) => {
      if (isFile(blob) && (name === undefined || name === blob.#name)) return blob
      return new File(bytesOfBlob(blob), name ?? 'blob', BYTES, typeOfBlob(blob), isFile(blob) ? blob.#lastModified : undefined)
    }
    copyBlob = (blob) =>
      isFile(blob)
        ? new File(bytesOfBlob(blob), blob.#name, BYTES, typeOfBlob(blob), blob.#lastModified)
        : blobOf(bytesOfBlob(blob), typeOfBlob(blob))
  }

  constructor(parts: unknown, name: unknown, options?: unknown, type?: string, modifiedMs?: number) {
    if (arguments.length < 2) throw new TypeError('A File needs its parts and a name.')
    if (options === BYTES) {
      super(parts, BYTES, type)
      this.#name = name as string
      this.#lastModified = modifiedMs ?? Date.now()
      return
    }
    if (typeof parts !== 'object' || parts === null) throw new TypeError('The parts of a File must be iterable.')
    super(parts, options)
    this.#name = toText(name).toWellFormed()
    const { lastModified } = optionsOf<FileOptions>(options as FileOptions, 'The options of a File')
    this.#lastModified = lastModified === undefined ? Date.now() : Math.trunc(Number(lastModified)) || 0
  }

  get name(): string {
    return this.#name
  }

  get lastModified(): number {
    return this.#lastModified
  }

  get webkitRelativePath(): string {
    return ''
  }
}

asInterfaces({ Blob, File })
// Else `length` would count what only the runtime gives.
Object.defineProperty(Blob, 'length', { value: 0, configurable: true })
Object.defineProperty(File, 'length', { value: 2, configurable: true })
delete (File.prototype as { webkitRelativePath?: unknown }).webkitRelativePath

function partsOf(parts: unknown): unknown[] {
  if (parts === undefined) return []
  if ((typeof parts !== 'object' && typeof parts !== 'function') || parts === null || !(Symbol.iterator in parts)) {
    throw new TypeError('The parts of a Blob must be iterable.')
  }
  return Array.from(parts as Iterable<unknown>, (part) => {
    if (isBlob(part) || bytesOf(part) !== undefined) return part
    return toText(part)
  })
}

function joined(parts: readonly unknown[], hasNativeEndings: boolean): Uint8Array {
  const pieces = parts.map((part) => {
    if (typeof part === 'string') return encodeUtf8(hasNativeEndings ? part.replaceAll(/\r\n?/g, '\n') : part)
    return isBlob(part) ? bytesOfBlob(part) : bytesOf(part)!
  })
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let offset = 0
  for (const piece of pieces) {
    bytes.set(piece, offset)
    offset += piece.length
  }
  return bytes
}

function typeOf(type: string): string {
  return /^[\x20-\x7e]*$/.test(type) ? type.toLowerCase() : ''
}

/** What WebIDL calls a `[Clamp] long long`, from the end if it is negative. */
function position(value: unknown, otherwise: number, size: number): number {
  if (value === undefined) return otherwise
  const given = Number(value)
  const whole = Number.isNaN(given) ? 0 : Math.trunc(given)
  return whole < 0 ? Math.max(size + whole, 0) : Math.min(whole, size)
}
