import { SafePromise, SafeTypeError } from '../../language/primordials.ts'
import { followSignal, isAborted, reasonOf } from '../abort-signal.ts'
import { type BodyKind, currentInvocation, startFetch, stopFetch } from '../host.ts'
import { bodyFromBridge, readForBridge } from './body.ts'
import { bodyOfRequest, fetchHeadJson, releaseSignal, Request, type RequestInit, signalOfRequest } from './request.ts'
import { isNullBodyStatus, type Response, responseOfFetch } from './response.ts'

/** The `fetch` of user code: the host carries it out, so every network policy is the host's. */
export function fetch(input: unknown, init?: RequestInit | null): Promise<Response> {
  const invocation = currentInvocation
  return new SafePromise((resolve, reject) => {
    const request = new Request(input, init)
    const signal = signalOfRequest(request)
    if (isAborted(signal)) throw reasonOf(signal)
    const head = fetchHeadJson(request)
    const send = (kind: BodyKind, text: string): void => {
      if (isAborted(signal)) return reject(reasonOf(signal))
      const id = startFetch(invocation, head, kind, text, (result, bodyKind, body) => {
        releaseSignal(request)
        if (!result.ok) return reject(new SafeTypeError(result.message))
        resolve(responseOfFetch(result, isNullBodyStatus(result.status) ? null : bodyFromBridge(bodyKind, body)))
      })
      followSignal(signal, () => {
        if (stopFetch(id)) reject(reasonOf(signal))
      })
    }
    readForBridge(bodyOfRequest(request), send, reject)
  })
}
