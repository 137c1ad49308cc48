import type { Problem } from '@carpool/core'

/** What was answered to a call, read to its end. */
export interface Answer {
  readonly path: string
  readonly status: number
  /** Of a problem document; else empty. */
  readonly code: string
  readonly text: string
  readonly headers: Headers
  /** Id of the invocation. */
  readonly id: string
  /** From the call to the end of the answer, in ms. */
  readonly tookMs: number
}

/** Calls and reads the whole answer. A call that the server cuts off has the status 0 and the reason as its text. */
export async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const fromMs = performance.now()
  const path = new URL(url).pathname
  try {
    const response = await fetch(url, { redirect: 'manual', ...init })
    const text = await response.text()
    const { status, headers } = response
    const tookMs = performance.now() - fromMs
    return { path, status, code: codeOf(headers, text), text, headers, id: headers.get('x-carpool-invocation') ?? '', tookMs }
  } catch (cause) {
    const text = cause instanceof Error ? `${cause.message}: ${String(cause.cause)}` : String(cause)
    return { path, status: 0, code: 'cut-off', text, headers: new Headers(), id: '', tookMs: performance.now() - fromMs }
  }
}

/** A problem document on one line. */
export function shown({ status, code, text }: Answer): string {
  return `${status} ${code} ${text.slice(0, 300)}`
}

function codeOf(headers: Headers, text: string): string {
  if (headers.get('content-type') !== 'application/problem+json') return ''
  try {
    return (JSON.parse(text) as Problem).code
  } catch {
    return 'unreadable'
  }
}
