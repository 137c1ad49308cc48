import type { FetchResult } from '@carpool/core'
import type { BodyKind } from '../bridge.ts'
import { maxBodyBytes, tooLongText } from './body-limit.ts'
import { jsonParse, SafeMap, SafeTypeError } from './language/primordials.ts'
import { bridge, enter } from './port.ts'

/** Takes what became of a fetch. */
export type FetchReceiver = (result: FetchResult, bodyKind: BodyKind, body: string) => void

interface OpenFetch {
  readonly invocation: number
  readonly receive: FetchReceiver
}

/** Most fetches that an isolate may wait for at the same time. Each takes a socket of the server, whose time they share. */
const OPEN_MAX = 3_000
/** Longest head that goes to the host, in UTF-16 units: several times what the server takes, which has a limit of its own. */
const HEAD_MAX = 512 * 1024
const fetches = new SafeMap<number, OpenFetch>()
let last = 0

/**
 * Has the host carry out a fetch on behalf of an invocation. `head` is the JSON text of a FetchHead.
 * @returns its number
 * @throws TypeError if too many are open, or what it sends is too long
 */
export function startFetch(invocation: number, head: string, bodyKind: BodyKind, body: string, receive: FetchReceiver): number {
  if (fetches.size >= OPEN_MAX) throw new SafeTypeError(`More than ${OPEN_MAX} fetches are open.`)
  if (head.length > HEAD_MAX)
    throw new SafeTypeError(`The head of a request has ${head.length} characters; the limit is ${HEAD_MAX}.`)
  if (body.length > maxBodyBytes) throw new SafeTypeError(tooLongText('request', body.length, bodyKind))
  const number = ++last
  fetches.set(number, { invocation, receive })
  bridge.startFetch(invocation, number, head, bodyKind, body)
  return number
}

/** @returns false if it has ended already */
export function stopFetch(number: number): boolean {
  if (!fetches.delete(number)) return false
  bridge.stopFetch(number)
  return true
}

/** Entry: a fetch has ended. It runs on behalf of the invocation that started it. */
export function settleFetch(number: number, resultText: string, bodyKind: BodyKind, body: string): void {
  const fetch = fetches.get(number)
  if (fetch === undefined) return
  fetches.delete(number)
  enter(fetch.invocation)
  const { receive } = fetch
  receive(jsonParse(resultText) as FetchResult, bodyKind, body)
}
