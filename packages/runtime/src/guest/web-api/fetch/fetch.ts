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
import {
  type BodyKind,
  type FetchReceiver,
  invocationNow,
  library,
  startFetch,
  startUpload,
  stopFetch,
  whenCanceled,
} from '../host.ts'
import { Body, bodyFromBridge, bodyOfChannel, cancelBody, sendWhole } from './body.ts'
import { openBody } from './body-sending.ts'
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
    const receiver: FetchReceiver = {
      responded(result, bodyKind, body) {
        if (!result.ok) return reject(new SafeTypeError(result.message))
        resolve(responseOfFetch(result, isNullBodyStatus(result.status) ? null : bodyFromBridge(bodyKind, body)))
      },
      headCame(fetched, channel) {
        const hasBody = !isNullBodyStatus(fetched.status)
        resolve(responseOfFetch(fetched, hasBody ? bodyOfChannel(channel) : null))
        if (!hasBody) channel.stopReceiving('It can have no body.')
      },
      ended: () => releaseSignal(request),
    }
    const follow = (number: number): void => {
      followSignal(signal, () => {
        if (stopFetch(number, reasonOf(signal))) reject(reasonOf(signal))
      })
    }
    const send = (kind: BodyKind, text: string): void => follow(startFetch(invocation, head, kind, text, receiver))
    if (!sendWhole(content, send)) follow(upload(content!, { invocation, head, receiver, reject }))
  })
}

interface Upload {
  readonly invocation: number
  readonly head: string
  readonly receiver: FetchReceiver
  /** It will get no response. */
  readonly reject: (error: unknown) => void
}

/**
 * Sends a request body that is a stream, unless the fetch ends or its invocation is canceled before. @returns the fetch's
 * number
 */
function upload(body: Body, { invocation, head, receiver, reject }: Upload): number {
  let unwatch: (() => void) | undefined
  const ended = (): void => {
    receiver.ended()
    unwatch?.()
  }
  const sending = openBody(body)
  const { number, channel } = startUpload(invocation, head, { ...receiver, ended })
  sending.by(channel, (error) => {
    reject(error)
    stopFetch(number, error)
  })
  unwatch = whenCanceled(invocation, (reason) => {
    sending.cancel(reason)
    const error = new SafeTypeError('The invocation has ended.')
    reject(error)
    stopFetch(number, error)
  })
  return number
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
