import type { BodyKind } from '../../bridge.ts'
import { bytesOf } from '../buffer-source.ts'
import { randomUuid } from '../crypto.ts'
import { bytesFromLatin1, latin1FromBytes } from '../encoding/latin1.ts'
import { decodeUtf8, encodeUtf8, stripBom } from '../encoding/utf8.ts'
import { bytesCopy, jsonParse, SafeTypeError, SafeUint8Array, stringToWellFormed } from '../primordials.ts'
import { isDisturbed, isReadableStream, readAll, streamOf, type ReadableStream } from '../streams.ts'
import { parseForm } from '../url/form-urlencoded.ts'
import { isSearchParams } from '../url/url-search-params.ts'
import { formDataOf, isFormData, multipartOf, type FormData } from './form-data.ts'
import { toText } from '../to-text.ts'

export type BodyInit = unknown

/** Bytes as the bridge carries them: one character for each. Kept so until somebody wants the bytes. */
class Latin1 {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Content = string | Uint8Array | Latin1 | ReadableStream<Uint8Array>

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
  return typeof content === 'object' && !(content instanceof SafeUint8Array) && !(content instanceof Latin1)
}

/** A body that came over the bridge; null for none. */
export function bodyFromBridge(kind: BodyKind, text: string): Body | null {
  return kind === 'none' ? null : new Body(kind === 'text' ? text : new Latin1(text))
}

export const TEXT_TYPE = 'text/plain;charset=UTF-8'

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
    if (isSearchParams(init)) {
      return { body: new Body(init.toString()), type: 'application/x-www-form-urlencoded;charset=UTF-8' }
    }
    if (isFormData(init)) {
      const boundary = `----carpool-${randomUuid()}`
      return { body: new Body(multipartOf(init, boundary)), type: `multipart/form-data; boundary=${boundary}` }
    }
    if (isReadableStream(init)) {
      if (init.locked || isDisturbed(init)) throw new SafeTypeError('The stream was read from already, or is locked.')
      return { body: new Body(init), type: '' }
    }
  }
  return { body: new Body(toText(init)), type: TEXT_TYPE }
}

export function isUsed(body: Body | null): boolean {
  return body !== null && (body.used || (body.stream !== undefined && isDisturbed(body.stream)))
}

function isUnusable(body: Body): boolean {
  return isUsed(body) || Boolean(body.stream?.locked)
}

/** A second body with the same content. @throws TypeError if it was read already */
export function cloneBody(body: Body | null): [Body | null, Body | null] {
  if (body === null) return [null, null]
  if (isUnusable(body)) throw new SafeTypeError('The body was read already, so it cannot be cloned.')
  if (body.stream === undefined) return [body, new Body(body.content)]
  const [one, two] = body.stream.tee()
  return [new Body(one), new Body(two)]
}

/** Hands the content to a new owner; the old one counts as used. @throws TypeError if it was read already */
export function takeBody(body: Body): Body {
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  body.used = true
  return new Body(body.stream ?? body.content)
}

function streamOfBody(body: Body): ReadableStream<Uint8Array> {
  if (body.stream === undefined) {
    body.stream = streamOf(body.used ? new SafeUint8Array(0) : ownBytes(body.content))
    // A used body is a stream that was read to its end.
    if (body.used) void body.stream.getReader().read()
  }
  return body.stream
}

function use(body: Body): void {
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  body.used = true
}

/** Bytes that the caller may keep and change. */
function ownBytes(content: Content): Uint8Array<ArrayBuffer> {
  if (typeof content === 'string') return encodeUtf8(content)
  return content instanceof Latin1 ? bytesFromLatin1(content.text) : bytesCopy(content as Uint8Array)
}

async function readBytes(body: Body | null): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null) return new SafeUint8Array(0)
  use(body)
  return body.stream === undefined ? ownBytes(body.content) : await readAll(body.stream)
}

async function readText(body: Body | null): Promise<string> {
  if (body === null) return ''
  use(body)
  if (body.stream !== undefined) return stripBom(decodeUtf8(await readAll(body.stream)))
  if (typeof body.content === 'string') return stripBom(stringToWellFormed(body.content))
  return stripBom(decodeUtf8(ownBytes(body.content)))
}

/** A body as it goes over the bridge. */
export interface BridgeBody {
  readonly kind: BodyKind
  readonly text: string
}

/** What goes over the bridge for a body: at once, or after its stream has ended. */
export function bodyForBridge(body: Body | null): BridgeBody | Promise<BridgeBody> {
  if (body === null) return { kind: 'none', text: '' }
  const { content, stream } = body
  if (stream !== undefined) return readForBridge(body)
  if (typeof content === 'string') return { kind: 'text', text: content }
  return { kind: 'bytes', text: content instanceof Latin1 ? content.text : latin1FromBytes(content as Uint8Array) }
}

async function readForBridge(body: Body): Promise<BridgeBody> {
  return { kind: 'bytes', text: latin1FromBytes(await readBytes(body)) }
}

/** The members that requests and responses share. */
export interface BodyMembers {
  readonly body: ReadableStream<Uint8Array> | null
  readonly bodyUsed: boolean
  arrayBuffer(): Promise<ArrayBuffer>
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
    async arrayBuffer() {
      return (await readBytes(bodyOf(this))).buffer
    },
    async bytes() {
      return await readBytes(bodyOf(this))
    },
    async formData() {
      const type = contentTypeOf(this) ?? ''
      if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
        throw new SafeTypeError(`A body of content type ${JSON.stringify(type)} cannot be read as form data.`)
      }
      return formDataOf(parseForm(await readText(bodyOf(this))))
    },
    async json() {
      return jsonParse(await readText(bodyOf(this))) as unknown
    },
    async text() {
      return await readText(bodyOf(this))
    },
  }
  Object.defineProperties(prototype, Object.getOwnPropertyDescriptors(members))
}
