import type { IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { CarpoolError } from '@carpool/core'
import { request as requestHttp } from '@carpool/core/node-http'

export interface ControlRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: URL
  readonly token: string | undefined
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/**
 * Sends a request to a control plane and gives the response with its body still to come. This is not the built-in `fetch` because
 * that one gives up on a silence of five minutes, which a quiet log and a long invocation both have.
 * @throws CarpoolError `unreachable`
 */
export async function sendControlRequest({ method, url, token, body, signal }: ControlRequest): Promise<IncomingMessage> {
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const headers = {
    accept: 'application/json, application/x-ndjson',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(payload !== undefined && { 'content-type': 'application/json', 'content-length': payload.byteLength }),
  }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  send(url, { method, headers, agent: false, ...(signal && { signal }) })
    .on('response', resolve)
    .on('error', (cause) => reject(unreachable(url, cause)))
    .end(payload)
  return promise
}

/** The body of a response, which may fail on its way. @throws CarpoolError `unreachable` */
export async function* readBody(response: IncomingMessage, url: URL): AsyncGenerator<Buffer> {
  try {
    yield* response
  } catch (cause) {
    throw new CarpoolError('unreachable', `The server at ${url.origin} hung up in the middle of its answer.`, { cause })
  }
}

function unreachable(url: URL, cause: unknown): CarpoolError {
  const { code, message } = cause as NodeJS.ErrnoException
  const why =
    code === 'ECONNREFUSED'
      ? `Nothing listens at ${url.origin}; start a server with: carpool serve`
      : `The server at ${url.origin} does not answer: ${message || code}`
  return new CarpoolError('unreachable', why, { cause })
}

/** The lines of a text that comes in chunks, without their ends; empty lines are left out. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let unfinished = ''
  for await (const chunk of chunks) {
    const lines = (unfinished + decoder.decode(chunk, { stream: true })).split('\n')
    unfinished = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
  if (unfinished !== '') yield unfinished
}
