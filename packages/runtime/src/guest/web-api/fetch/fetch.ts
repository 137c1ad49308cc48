import type { FetchedHead, HeaderList } from '@carpool/core'
import {
  SafePromise,
  SafeTypeError,
  SafeUint8Array,
  stringIndexOf,
  stringSlice,
  stringStartsWith,
} from '../../language/primordials.ts'
import { type AbortSignal, followSignal, isAborted, reasonOf } from '../abort-signal.ts'
import { type BodyKind, invocationNow, library, startFetch, stopFetch, whenCanceled } from '../host.ts'
import { Body, bodyFromBridge, type BodyReceiver, cancelBody, sendWhole } from './body.ts'
import { collectBody } from './body-collector.ts'
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
  const invocation = invocationNow()
  return new SafePromise((resolve, reject) => {
    const request = new Request(input, init)
    const signal = signalOfRequest(request)
    const content = bodyOfRequest(request)
    if (isAborted(signal)) {
      cancelBody(content, reasonOf(signal))
      throw reasonOf(signal)
    }
    if (hasLocalContent(request)) return resolve(responseOfLocal(request))
    const head = fetchHeadJson(request)
    const send = (kind: BodyKind, text: string): void => {
      const id = startFetch(invocation, head, kind, text, (result, bodyKind, body) => {
        releaseSignal(request)
        if (!result.ok) return reject(new SafeTypeError(result.message))
        resolve(responseOfFetch(result, isNullBodyStatus(result.status) ? null : bodyFromBridge(bodyKind, body)))
      })
      followSignal(signal, () => {
        if (stopFetch(id)) reject(reasonOf(signal))
      })
    }
    if (sendWhole(content, send)) return
    collectUpload(content!, { invocation, signal, send }, (error) => {
      releaseSignal(request)
      reject(error)
    })
  })
}

/** Collects a request body that is a stream and sends it, unless the signal is aborted or the invocation canceled before. */
function collectUpload(
  body: Body,
  { invocation, signal, send }: { invocation: number; signal: AbortSignal; send: BodyReceiver },
  fail: (error: unknown) => void,
): void {
  let unfollow: (() => void) | undefined
  let unwatch: (() => void) | undefined
  const leave = (): void => {
    unfollow?.()
    unwatch?.()
  }
  const end = (error: unknown): void => {
    leave()
    fail(error)
  }
  const collecting = collectBody('request', body, invocation, {
    whole(text) {
      leave()
      send('bytes', text)
    },
    tooLong: (message) => end(new SafeTypeError(message)),
    failed: (error) => end(error),
  })
  unfollow = followSignal(signal, () => {
    collecting.cancel(reasonOf(signal))
    end(reasonOf(signal))
  })
  unwatch = whenCanceled(invocation, (reason) => {
    collecting.cancel(reason)
    end(new SafeTypeError('The invocation has ended.'))
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
