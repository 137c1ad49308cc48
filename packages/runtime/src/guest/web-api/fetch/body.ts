import type { BodyKind } from '../host.ts'
import {
  bytesCopy,
  defineProperty,
  getOwnPropertyDescriptor,
  jsonParse,
  jsonStringify,
  ownKeys,
  SafeTypeError,
  SafeUint8Array,
  stringToWellFormed,
  typedArrayBuffer,
  viewName,
} from '../../language/primordials.ts'
import { bytesOf, matches, toText } from '../../language/values.ts'
import { randomUuid } from '../crypto.ts'
import { bytesFromLatin1, decodeUtf8, encodeUtf8, latin1FromBytes, stripBom } from '../encoding.ts'
import { readAll } from '../stream-reading.ts'
import { cancelBy, discardStream, isDisturbed, isReadableStream, type ReadableStream, streamOf } from '../streams.ts'
import { parseForm } from '../url/percent-encoding.ts'
import { isSearchParams, textOfParams } from '../url/search-params.ts'
import { type FormData, formDataOf, isFormData, multipartOf } from './form-data.ts'

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
  return typeof content === 'object' && viewName(content) === undefined && !isLatin1(content)
}

/** A body that came over the bridge; null for none. */
export function bodyFromBridge(kind: BodyKind, text: string): Body | null {
  return kind === 'none' ? null : new Body(kind === 'text' ? text : new Latin1(text))
}

export const TEXT_TYPE = 'text/plain;charset=UTF-8'
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

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
      return { body: new Body(textOfParams(init)), type: 'application/x-www-form-urlencoded;charset=UTF-8' }
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
  return isUsed(body) || body.stream?.locked === true
}

/** A second body with the same content. @throws TypeError if it was read already */
export function cloneBody(body: Body | null): { readonly mine: Body | null; readonly other: Body | null } {
  if (body === null) return { mine: null, other: null }
  if (isUnusable(body)) throw new SafeTypeError('The body was read already, so it cannot be cloned.')
  if (body.stream === undefined) return { mine: body, other: new Body(body.content) }
  const halves = body.stream.tee()
  return { mine: new Body(halves[0]), other: new Body(halves[1]) }
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
    if (body.used) discardStream(body.stream)
  }
  return body.stream
}

/** Bytes that the caller may keep and change. */
function ownBytes(content: Content): Uint8Array<ArrayBuffer> {
  if (typeof content === 'string') return encodeUtf8(content)
  return isLatin1(content) ? bytesFromLatin1(content.text) : bytesCopy(content as Uint8Array)
}

function textOf(content: Content): string {
  return stripBom(typeof content === 'string' ? stringToWellFormed(content) : decodeUtf8(ownBytes(content)))
}

/** Takes a body as it goes over the bridge: `text` for a `kind`. */
export type BodyReceiver = (kind: BodyKind, text: string) => void

/**
 * Gives what goes over the bridge for a body that is there as a whole, at once.
 * @returns false if it is a stream, which must be collected
 */
export function sendWhole(body: Body | null, receive: BodyReceiver): boolean {
  if (body === null) receive('none', '')
  else if (body.stream !== undefined) return false
  else if (typeof body.content === 'string') receive('text', body.content)
  else receive('bytes', isLatin1(body.content) ? body.content.text : latin1FromBytes(body.content as Uint8Array))
  return true
}

/** The stream of a body that is one, to be read once. @throws TypeError if it was read already */
export function streamToRead(body: Body): ReadableStream<Uint8Array> {
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  body.used = true
  return body.stream!
}

/** Nobody will read it: its source is told. Without effect if it is no stream, or is or was read by somebody. */
export function cancelBody(body: Body | null, reason: unknown): void {
  if (body?.stream === undefined || isUnusable(body)) return
  body.used = true
  void cancelBy(body.stream, body.stream, reason)
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
    arrayBuffer() {
      return read(this, bodyOf, (content) => typedArrayBuffer(ownBytes(content)) as ArrayBuffer)
    },
    bytes() {
      return read(this, bodyOf, ownBytes)
    },
    formData() {
      return read(
        this,
        bodyOf,
        (content) => formDataOf(parseForm(textOf(content))),
        (self) => requireForm(contentTypeOf(self)),
      )
    },
    json() {
      return read(this, bodyOf, (content) => jsonParse(textOf(content)) as unknown)
    },
    text() {
      return read(this, bodyOf, textOf)
    },
  }
  const names = ownKeys(members)
  for (let index = 0; index < names.length; index++) {
    defineProperty(prototype, names[index]!, getOwnPropertyDescriptor(members, names[index]!)!)
  }
}

/** Reads the body of an object, which is without one like one that is empty. What goes wrong rejects the promise. */
async function read<T, R>(
  self: T,
  bodyOf: (self: T) => Body | null,
  convert: (content: Content) => R,
  check?: (self: T) => void,
): Promise<R> {
  check?.(self)
  const body = bodyOf(self)
  if (body === null) return convert('')
  if (isUnusable(body)) throw new SafeTypeError('The body was read already.')
  body.used = true
  // Awaits only what needs it: the first look at a promise is one at `constructor`, which user code may have replaced.
  return convert(body.stream === undefined ? body.content : await readAll(body.stream))
}

function requireForm(contentType: string | null): void {
  if (contentType !== null && matches(contentType, FORM_TYPE)) return
  throw new SafeTypeError(`A body of content type ${jsonStringify(contentType ?? '')} cannot be read as form data.`)
}
