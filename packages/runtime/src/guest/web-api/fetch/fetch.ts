import type { FetchedHead, HeaderList } from '@carpool/core'
import {
  SafePromise,
  SafeTypeError,
  SafeUint8Array,
  stringIndexOf,
  stringSlice,
  stringStartsWith,
} from '../../language/primordials.ts'
import { followSignal, isAborted, reasonOf } from '../abort-signal.ts'
import { type BodyKind, currentInvocation, library, startFetch, stopFetch } from '../host.ts'
import { Body, bodyFromBridge, readForBridge } from './body.ts'
import {
  bodyOfRequest,
  fetchHeadJson,
  methodOfRequest,
  releaseSignal,
  Request,
  type RequestInit,
  signalOfRequest,
  urlOfRequest,
} from './request.ts'
import { isNullBodyStatus, type Response, responseOfFetch } from './response.ts'

/** The `fetch` of user code: the host carries it out, so every network policy is the host's. */
export function fetch(input: unknown, init?: RequestInit | null): Promise<Response> {
  const invocation = currentInvocation
  return new SafePromise((resolve, reject) => {
    const request = new Request(input, init)
    const signal = signalOfRequest(request)
    if (isAborted(signal)) throw reasonOf(signal)
    if (hasLocalContent(request)) return resolve(responseOfLocal(request))
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

function hasLocalContent(request: Request): boolean {
  const url = urlOfRequest(request)
  return stringStartsWith(url, 'data:') || stringStartsWith(url, 'blob:')
}

/** @throws TypeError if there is none */
function responseOfLocal(request: Request): Response {
  const url = urlOfRequest(request)
  const hash = stringIndexOf(url, '#')
  const method = methodOfRequest(request)
  const isKnown = stringStartsWith(url, 'data:') || method === 'GET'
  const found = isKnown ? library('files').responseOfData(hash === -1 ? url : stringSlice(url, 0, hash)) : undefined
  if (found === undefined) throw new SafeTypeError('The URL cannot be fetched.')
  const { type, bytes } = found
  const headers: HeaderList = type === '' ? [] : [['content-type', type]]
  const head: FetchedHead = { ok: true, status: 200, statusText: 'OK', headers, url, redirected: false }
  return responseOfFetch(head, new Body(method === 'HEAD' ? new SafeUint8Array(0) : bytes))
}
