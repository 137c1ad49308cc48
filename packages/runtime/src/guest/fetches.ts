import { FETCH_BODIES_BYTES, type FetchResult, type FetchedHead, STREAM_WINDOW_BYTES } from '@carpool/core'
import { type BodyKind, OF_FETCH } from '../bridge.ts'
import { maxBodyBytes, tooLongText } from './body-limit.ts'
import { Channel, type Framing } from './channels.ts'
import { entryNumber } from './entry-end.ts'
import { jsonParse, type List, max, SafeList, SafeMap, SafeTypeError } from './language/primordials.ts'
import { bridge, enter, spendText } from './port.ts'
import { describeError } from './web-api/errors.ts'

/** Takes what becomes of a fetch. */
export interface FetchReceiver {
  /** The response is here, or it failed before that. */
  responded(result: FetchResult, bodyKind: BodyKind, body: string): void
  /** The response is here, but for its body, which comes by the channel. */
  headCame(head: FetchedHead, channel: Channel): void
  /** It is over, with its bodies. */
  ended(): void
}

interface OpenFetch {
  readonly invocation: number
  readonly receiver: FetchReceiver
  /** Of what streams of it: the request's body, the response's, or both. */
  channel: Channel | undefined
}

/** Most fetches that an isolate may wait for at the same time. Each takes a socket of the server, whose time they share. */
const OPEN_MAX = 3_000
/** Longest head that goes to the host, in UTF-16 units: several times what the server takes, which has a limit of its own. */
const HEAD_MAX = 512 * 1024
const fetches = new SafeMap<number, OpenFetch>()
/** Those of which the response's head has come. */
const responding = new SafeMap<number, OpenFetch>()
let last = 0
/**
 * UTF-16 units of the bodies that this entry has sent, whatever became of their fetches. It does not count those of entries
 * before: the host, which refuses by what is open, has heard of their ends first.
 */
let sentUnits = 0
let sendingEntry = 0

/**
 * Has the host carry out a fetch on behalf of an invocation. `head` is the JSON text of a FetchHead.
 * @returns its number
 * @throws TypeError if too many are open, or what it sends is too long
 */
export function startFetch(invocation: number, head: string, bodyKind: BodyKind, body: string, receiver: FetchReceiver): number {
  check(head)
  if (body.length > maxBodyBytes) throw new SafeTypeError(tooLongText('request', body.length, bodyKind))
  if (sendingEntry !== entryNumber) {
    sendingEntry = entryNumber
    sentUnits = 0
  }
  // A text has at least a byte for each unit.
  const mostBytes = max(FETCH_BODIES_BYTES, maxBodyBytes)
  if (sentUnits + body.length > mostBytes) {
    // As if it were sent: a loop waits for the host all the same.
    spendText(body.length)
    throw new SafeTypeError(`The request bodies of fetches that begin together may have ${mostBytes} bytes, not more.`)
  }
  sentUnits += body.length
  const number = ++last
  fetches.set(number, { invocation, receiver, channel: undefined })
  bridge.startFetch(invocation, number, head, bodyKind, body)
  return number
}

/**
 * The same with a body that is sent by a channel. If all of it is sent in the entry that runs, it leaves with the fetch.
 * @throws TypeError if too many are open, or the head is too long
 */
export function startUpload(
  invocation: number,
  head: string,
  receiver: FetchReceiver,
): { readonly number: number; readonly channel: Channel } {
  check(head)
  const number = ++last
  const fetch: OpenFetch = { invocation, receiver, channel: undefined }
  const framing: Framing = {
    begin(isWhole) {
      const isSentWhole = isWhole && channel.leavingBytes <= maxBodyBytes
      bridge.startFetch(invocation, number, head, isSentWhole ? 'bytes' : 'stream', isSentWhole ? channel.takeLeaving() : '')
      return !isSentWhole
    },
    broke(error) {
      // The stream of its body was canceled, which may have stopped it.
      if (fetches.get(number) !== fetch) return
      enter(invocation)
      const message = `The request could not be sent: ${describeError(error).message}`
      try {
        bridge.stopFetch(number)
      } finally {
        endFetch(number, fetch, { ok: false, message }, 'none', '')
      }
    },
  }
  // The host says when it may leave: the fetch may have to wait there.
  const channel = new Channel(OF_FETCH, number, invocation, 0, framing)
  fetch.channel = channel
  fetches.set(number, fetch)
  channel.begin()
  return { number, channel }
}

function check(head: string): void {
  if (fetches.size >= OPEN_MAX) throw new SafeTypeError(`More than ${OPEN_MAX} fetches are open.`)
  if (head.length > HEAD_MAX)
    throw new SafeTypeError(`The head of a request has ${head.length} characters; the limit is ${HEAD_MAX}.`)
}

/**
 * Stops a fetch: what streams of it breaks off with the reason.
 * @returns false if it has ended already
 */
export function stopFetch(number: number, reason: unknown): boolean {
  const fetch = fetches.get(number)
  if (fetch === undefined) return false
  // Of an upload that has not begun the host knows nothing.
  if (fetch.channel?.hasBegun !== false || responding.has(number)) bridge.stopFetch(number)
  remove(number)
  fetch.channel?.close(reason)
  const { receiver } = fetch
  receiver.ended()
  return true
}

/** Stops the fetches of an invocation that has ended, of which nobody reads the response. */
export function letGoOfUnread(invocation: number): void {
  if (responding.size === 0) return
  const unread: List<number> = new SafeList()
  responding.forEach((fetch, number) => {
    if (fetch.invocation === invocation && fetch.channel?.isUnread === true) unread[unread.length] = number
  })
  for (let index = 0; index < unread.length; index++) stopFetch(unread[index]!, new SafeTypeError('The invocation has ended.'))
}

/** Entry: the response of a fetch is here, but for its body. It runs on behalf of the invocation that started it. */
export function fetchHead(number: number, headText: string): void {
  const fetch = fetches.get(number)
  if (fetch === undefined) return
  enter(fetch.invocation)
  responding.set(number, fetch)
  const channel = (fetch.channel ??= new Channel(OF_FETCH, number, fetch.invocation, STREAM_WINDOW_BYTES))
  channel.onUnwanted = (reason) => void stopFetch(number, reason)
  const { receiver } = fetch
  receiver.headCame(jsonParse(headText) as FetchedHead, channel)
}

/** Entry: a fetch has ended. It runs on behalf of the invocation that started it. */
export function settleFetch(number: number, resultText: string, bodyKind: BodyKind, body: string): void {
  const fetch = fetches.get(number)
  if (fetch === undefined) return
  enter(fetch.invocation)
  endFetch(number, fetch, jsonParse(resultText) as FetchResult, bodyKind, body)
}

function endFetch(number: number, fetch: OpenFetch, result: FetchResult, bodyKind: BodyKind, body: string): void {
  const isResponding = responding.has(number)
  remove(number)
  const { receiver, channel } = fetch
  if (!isResponding) receiver.responded(result, bodyKind, body)
  else if (result.ok) channel!.endIncoming()
  const error = new SafeTypeError(result.ok ? 'The fetch has ended.' : result.message)
  channel?.close(error)
  receiver.ended()
}

function remove(number: number): void {
  fetches.delete(number)
  responding.delete(number)
}
