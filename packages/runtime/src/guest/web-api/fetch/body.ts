import { type BodyKind, type Channel, isChannel, library, loadedLibrary } from '../host.ts'
import {
  asyncIteratorSymbol,
  bytesCopy,
  defineProperty,
  getOwnPropertyDescriptor,
  jsonParse,
  ownKeys,
  SafeTypeError,
  SafeUint8Array,
  stringToWellFormed,
  typedArrayBuffer,
  viewName,
} from '../../language/primordials.ts'
import { bytesOf, toText } from '../../language/values.ts'
import { randomUuid } from '../crypto.ts'
import { bytesFromLatin1, decodeUtf8, encodeUtf8, latin1FromBytes, stripBom } from '../encoding.ts'
import { channelOfStream, collectChannel, streamOfChannel } from '../channel-stream.ts'
import { readAll } from '../stream-reading.ts'
import { cancelBy, discardStream, isDisturbed, isReadableStream, type ReadableStream, streamOf, streams } from '../streams.ts'

export type BodyInit = unknown

let isLatin1: (value: unknown) => value is Latin1

/** Bytes as the bridge carries them: one character for each. Kept so until somebody wants the bytes. */
class Latin1 {
  readonly #text: string

  static {
    isLatin1 = (value): value is Latin1 => typeof value === 'object' && value !== null && #text in value
  }

  constructor(text: string) {
    this.#text = text
  }

  get text(): string {
    return this.#text
  }
}

/** What is there as a whole. */
type WholeContent = string | Uint8Array | Latin1
type Content = WholeContent | Channel | ReadableStream<Uint8Array>

/** The body of a request or response. What it holds is never changed, so clones share it. */
export class Body {
  readonly content: Content
  /** Made when `body` is asked for. */
  stream: ReadableStream<Uint8Array> | undefined
  used = false

  constructor(content: Content) {
    this.content = content
    if (isStream(content)) this.stream = content
  }
}

function isStream(content: Content): content is ReadableStream<Uint8Array> {
  return typeof content === 'object' && viewName(content) === undefined && !isLatin1(content) && !isChannel(content)
}

/** A body that comes bit by bit. */
export function bodyOfChannel(channel: Channel): Body {
  return new Body(channel)
}

/** A body that came over the bridge; null for none. */
export function bodyFromBridge(kind: BodyKind, text: string): Body | null {
  return kind === 'none' ? null : new Body(kind === 'text' ? text : new Latin1(text))
}

export function comesByChannel(body: Body | null): boolean {
  return body !== null && isChannel(body.content)
}

export const TEXT_TYPE = 'text/plain;charset=UTF-8'
type Files = ReturnType<typeof library<'files'>>
type Blob = InstanceType<Files['Blob']>
type FormData = InstanceType<Files['FormData']>

export interface Extracted {
  readonly body: Body
  /** The content type that the kind of the value implies; '' for none. */
  readonly type: string
}

/** "Extract a body" of the Fetch standard, for what is no string. */
export function extractBody(init: unknown): Extracted {
  if (typeof init === 'object' && init !== null) {
    const bytes = bytesOf(init)
    if (bytes !== undefined) return { body: new Body(bytesCopy(bytes)), type: '' }
    // What a library makes cannot be there before it is loaded.
    const url = loadedLibrary('url')
    if (url?.isSearchParams(init)) {
      return { body: new Body(url.textOfParams(init)), type: 'application/x-www-form-urlencoded;charset=UTF-8' }
    }
    const files = loadedLibrary('files')
    if (files?.isFormData(init)) {
      const boundary = `----carpool-${randomUuid()}`
      return { body: new Body(files.encodeMultipart(init, boundary)), type: `multipart/form-data; boundary=${boundary}` }
    }
    if (files?.isBlob(init)) return { body: new Body(files.bytesOfBlob(init)), type: files.typeOfBlob(init) }
    if (isReadableStream(init)) {
      if (init.locked || isDisturbed(init)) throw new SafeTypeError('The stream was read from already, or is locked.')
      return { body: new Body(init), type: '' }
    }
    // As Node.js has it: a stream of `node:stream`, or what an async generator gives.
    if (isAsyncIterable(init)) return { body: new Body(streams().ReadableStream.from(init)), type: '' }
  }
  return { body: new Body(toText(init)), type: TEXT_TYPE }
}

function isAsyncIterable(value: object): value is AsyncIterable<Uint8Array> {
  return typeof (value as Record<symbol, unknown>)[asyncIteratorSymbol] === 'function'
}

export function isUsed(body: Body | null): boolean {
  return body !== null && (body.used || (body.stream !== undefined && isDisturbed(body.stream)))
}

function isUnusable(body: Body): boolean {
  return isUsed(body) || body.stream?.locked === true
}

/** A second body with the same content. @throws TypeError if it was read already */
export function cloneBody(body: Body | null): { readonly mine: Body | null; readonly other: Body | null } {
  if (body === null) return { mine: null, other: null }
  if (isUnusable(body)) throw new SafeTypeError('The body was read already, so it cannot be cloned.')
  if (body.stream === undefined && !isChannel(body.content)) return { mine: body, other: new Body(body.content) }
  const halves = streamOfBody(body).tee()
  return { mine: new Body(halves[0]), other: new Body(copyChunks(halves[1])) }
}

/** Gives copies of what the stream gives, as the other half gives the same chunks. */
function copyChunks(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const { TransformStream } = streams()
  const { structuredClone } = library('clone')
  const transformer: Transformer = {
    __proto__: null,
    transform(chunk, controller) {
      controller.enqueue(structuredClone(chunk) as Uint8Array)
    },
  }
  // Nothing is read ahead.
  return stream.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(transformer, undefined, { highWaterMark: 0 }))
}

interface Transformer {
  readonly __proto__: null
  transform(chunk: Uint8Array, controller: { enqueue(chunk: Uint8Array): void }): void
}

/** Hands the content to a new owner; the old one counts as used. @throws TypeError if it was read already */
export function takeBody(body: Body): Body {
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  body.used = true
  return new Body(body.stream ?? body.content)
}

function streamOfBody(body: Body): ReadableStream<Uint8Array> {
  if (body.stream === undefined) {
    if (!body.used && isChannel(body.content)) return (body.stream = streamOfChannel(body.content))
    body.stream = streamOf(body.used ? new SafeUint8Array(0) : ownBytes(body.content as WholeContent))
    // A used body is a stream that was read to its end.
    if (body.used) discardStream(body.stream)
  }
  return body.stream
}

/** Bytes that the caller may keep and change. */
function ownBytes(content: WholeContent): Uint8Array<ArrayBuffer> {
  if (typeof content === 'string') return encodeUtf8(content)
  return isLatin1(content) ? bytesFromLatin1(content.text) : bytesCopy(content)
}

function textOf(content: WholeContent, isWithoutBom = true): string {
  const text = typeof content === 'string' ? stringToWellFormed(content) : decodeUtf8(ownBytes(content))
  return isWithoutBom ? stripBom(text) : text
}

/** One character for each byte. */
function latin1Of(content: WholeContent): string {
  if (isLatin1(content)) return content.text
  return latin1FromBytes(typeof content === 'string' ? encodeUtf8(content) : content)
}

/** Takes a body as it goes over the bridge: `text` for a `kind`. */
export type BodyReceiver = (kind: BodyKind, text: string) => void

/**
 * Gives what goes over the bridge for a body that is there as a whole, at once.
 * @returns false if it is a stream
 */
export function sendWhole(body: Body | null, receive: BodyReceiver): boolean {
  if (body === null) receive('none', '')
  else if (body.stream !== undefined || isChannel(body.content)) return false
  else if (typeof body.content === 'string') receive('text', body.content)
  else receive('bytes', isLatin1(body.content) ? body.content.text : latin1FromBytes(body.content as Uint8Array))
  return true
}

/** The stream of a body that is one, to be read once. @throws TypeError if it was read already */
export function streamToRead(body: Body): ReadableStream<Uint8Array> {
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  const stream = streamOfBody(body)
  body.used = true
  return stream
}

/**
 * The channel by which a body comes of which nobody has read anything; it is used then. Else undefined, and nothing has
 * happened.
 */
export function channelToRelay(body: Body): Channel | undefined {
  if (isUnusable(body)) return undefined
  const { stream, content } = body
  const channel = stream === undefined ? (isChannel(content) ? content : undefined) : channelOfStream(stream)
  if (channel?.isUnread !== true) return undefined
  body.used = true
  // From now on it is nobody else's.
  stream?.getReader()
  return channel
}

/** Nobody will read it: its source is told. Without effect if it is no stream, or is or was read by somebody. */
export function cancelBody(body: Body | null, reason: unknown): void {
  if (body === null || isUnusable(body)) return
  if (body.stream === undefined) {
    if (!isChannel(body.content)) return
    body.used = true
    return body.content.stopReceiving('Nobody reads it.', reason)
  }
  body.used = true
  void cancelBy(body.stream, body.stream, reason)
}

/** The members that requests and responses share. */
export interface BodyMembers {
  readonly body: ReadableStream<Uint8Array> | null
  readonly bodyUsed: boolean
  arrayBuffer(): Promise<ArrayBuffer>
  blob(): Promise<Blob>
  bytes(): Promise<Uint8Array<ArrayBuffer>>
  formData(): Promise<FormData>
  json(): Promise<unknown>
  text(): Promise<string>
}

/** Puts the shared members on a prototype. Both functions throw a TypeError for what is no object of the class. */
export function mixBody<T extends object>(
  prototype: T,
  bodyOf: (self: T) => Body | null,
  contentTypeOf: (self: T) => string | null,
): void {
  const members: BodyMembers & ThisType<T> = {
    get body() {
      const body = bodyOf(this)
      return body === null ? null : streamOfBody(body)
    },
    get bodyUsed() {
      return isUsed(bodyOf(this))
    },
    arrayBuffer() {
      return read(this, bodyOf, (content) => typedArrayBuffer(ownBytes(content)) as ArrayBuffer)
    },
    blob() {
      return read(this, bodyOf, (content) => {
        const { blobOf, blobTypeOf } = library('files')
        return blobOf(ownBytes(content), blobTypeOf(contentTypeOf(this)))
      })
    },
    bytes() {
      return read(this, bodyOf, ownBytes)
    },
    formData() {
      return read(this, bodyOf, (content) => {
        const body = { text: () => textOf(content, false), latin1: () => latin1Of(content) }
        return library('files').readForm(contentTypeOf(this), body)
      })
    },
    json() {
      return read(this, bodyOf, (content) => jsonParse(textOf(content)) as unknown)
    },
    text() {
      return read(this, bodyOf, (content) => textOf(content))
    },
  }
  const names = ownKeys(members)
  for (let index = 0; index < names.length; index++) {
    defineProperty(prototype, names[index]!, getOwnPropertyDescriptor(members, names[index]!)!)
  }
}

/** Reads the body of an object, which is without one like one that is empty. What goes wrong rejects the promise. */
async function read<T, R>(self: T, bodyOf: (self: T) => Body | null, convert: (content: WholeContent) => R): Promise<R> {
  const body = bodyOf(self)
  if (body === null) return convert('')
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  body.used = true
  // Awaits only what needs it: the first look at a promise is one at `constructor`, which user code may have replaced.
  const { stream, content } = body
  if (stream === undefined) return convert(isChannel(content) ? await collectChannel(content) : (content as WholeContent))
  return convert(await readAll(stream, channelOfStream(stream)?.what))
}
