/**
 * Bodies that do not wait to be whole, as the stages of a call pass them on: the gateway has the client's side, the connection
 * with the host the other.
 */
import type { HeaderList } from './http.ts'

/** Where the body of a request goes. */
export interface UploadTaker {
  /** Whether the function would take more than it has got: only then does it wait for the client. */
  readonly isWanted: boolean
  /** Bytes can be taken that could not before, or the body has ended or broken off. */
  readable(): void
}

/** The body of a request that streams. Nothing of it is read before a host takes the call. */
export interface Upload {
  /** What was taken so far, in bytes. */
  readonly takenBytes: number
  /** `ended` and `broken` once everything that came was taken. */
  readonly state: 'open' | 'ended' | 'broken'
  /** Why it broke off, for the function. */
  readonly why: string
  /** A host takes the call. Called once. */
  open(taker: UploadTaker): void
  /** The next bytes, at most so many; undefined if there are none now. */
  take(mostBytes: number): Uint8Array | undefined
  /** The function takes none of the rest. */
  stop(): void
}

/** An answer whose head came ahead of its body, as far as the record of its call goes by it. */
export interface BegunAnswer {
  /** When the head came, on the monotonic clock, in ms. */
  readonly atMs: number
  /** The head's status, if the caller has got that; undefined if it gets the answer as a whole. */
  readonly status: number | undefined
  /** What has come of the body, or of a WebSocket's messages. */
  readonly bytes: number
  /** Of a WebSocket: what has come of the caller's messages. */
  readonly receivedBytes?: number
}

/** Takes the body of an answer, piece by piece: no more at a time than the window of streams, until bytes are credited. */
export interface AnswerSink {
  /** The bytes may be a view of more: if they are not, their memory is freed when they are written. */
  write(bytes: Uint8Array): void
}

/** What a function says that the length of its answer's body is, in bytes; undefined if it says nothing that can be relied on. */
export function announcedLength(headers: HeaderList): number | undefined {
  const values = headers.filter(([name]) => name === 'content-length').map(([, value]) => value)
  const [value = ''] = values
  const length = Number(value)
  return values.length === 1 && /^\d+$/.test(value) && Number.isSafeInteger(length) ? length : undefined
}

/** Whether an answer has no body, whatever its headers say (RFC 9110, sections 6.4.1, 9.3.2 and 15.3.6). */
export function isBodiless(method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 205 || status === 304
}
