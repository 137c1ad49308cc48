import type { FetchResult } from '@carpool/core'
import type { BodyKind } from '../../bridge.ts'
import { current, enter } from '../current.ts'
import { followSignal, isAborted, reasonOf } from '../events/abort-signal.ts'
import { bridge } from '../port.ts'
import { jsonParse, SafeMap, SafePromise, SafeTypeError } from '../primordials.ts'
import { bodyFromBridge, readForBridge } from './body.ts'
import { bodyOfRequest, fetchHeadJson, releaseSignal, Request, type RequestInit, signalOfRequest } from './request.ts'
import { isNullBodyStatus, type Response, responseOfFetch } from './response.ts'

interface Pending {
  readonly invocation: number
  readonly resolve: (response: Response) => void
  readonly reject: (error: unknown) => void
  readonly release: () => void
}

/** Most fetches that an isolate may wait for at the same time. Each takes a socket of the server, whose time they share. */
const OPEN_MAX = 3_000
const pending = new SafeMap<number, Pending>()
let last = 0

/** The `fetch` of user code: the host carries it out, so every network policy is the host's. */
export function fetch(input: unknown, init?: RequestInit | null): Promise<Response> {
  const invocation = current
  return new SafePromise((resolve, reject) => {
    const request = new Request(input, init)
    const signal = signalOfRequest(request)
    if (isAborted(signal)) throw reasonOf(signal)
    const head = fetchHeadJson(request)
    const send = (kind: BodyKind, text: string): void => {
      if (isAborted(signal)) return reject(reasonOf(signal))
      if (pending.size >= OPEN_MAX) return reject(new SafeTypeError(`More than ${OPEN_MAX} fetches are open.`))
      const id = ++last
      followSignal(signal, () => {
        if (!pending.delete(id)) return
        bridge.stopFetch(id)
        reject(reasonOf(signal))
      })
      const release = (): void => releaseSignal(request)
      pending.set(id, { invocation, resolve, reject, release })
      bridge.startFetch(invocation, id, head, kind, text)
    }
    readForBridge(bodyOfRequest(request), send, reject)
  })
}

/** Entry: a fetch has ended. */
export function settleFetch(id: number, resultText: string, bodyKind: BodyKind, body: string): void {
  const waiting = pending.get(id)
  if (waiting === undefined) return
  pending.delete(id)
  enter(waiting.invocation)
  waiting.release()
  const result = jsonParse(resultText) as FetchResult
  if (!result.ok) {
    waiting.reject(new SafeTypeError(result.message))
    return
  }
  const { status, statusText, headers, url, redirected } = result
  waiting.resolve(
    responseOfFetch({
      status,
      statusText,
      headers,
      url,
      redirected,
      body: isNullBodyStatus(status) ? null : bodyFromBridge(bodyKind, body),
    }),
  )
}
