import type { Problem } from '@carpool/core'

/** Code of an answer that the server cut off. */
export const CUT_OFF = 'cut-off'

/** What was answered to a call, read to its end. */
export interface Answer {
  readonly path: string
  readonly status: number
  /** Of a problem document, or {@link CUT_OFF}; else empty. */
  readonly code: string
  readonly text: string
  readonly headers: Headers
  /** Id of the invocation. */
  readonly id: string
  /** From the call to the end of the answer, in ms. */
  readonly tookMs: number
}

/**
 * Calls and reads the whole answer. One that the server cuts off has the code `cut-off`, the reason as its text, and the status
 * and headers of its head, or 0 and none if it had not begun.
 */
export async function call(url: string, init: RequestInit = {}): Promise<Answer> {
  const fromMs = performance.now()
  const path = new URL(url).pathname
  let response: Response | undefined
  try {
    response = await fetch(url, { redirect: 'manual', ...init })
    const text = await response.text()
    const { status, headers } = response
    const tookMs = performance.now() - fromMs
    return { path, status, code: codeOf(headers, text), text, headers, id: idOf(headers), tookMs }
  } catch (cause) {
    const text = cause instanceof Error ? `${cause.message}: ${String(cause.cause)}` : String(cause)
    const { status = 0, headers = new Headers() } = response ?? {}
    return { path, status, code: CUT_OFF, text, headers, id: idOf(headers), tookMs: performance.now() - fromMs }
  }
}

/** A problem document on one line. */
export function shown({ status, code, text }: Answer): string {
  return `${status} ${code} ${text.slice(0, 300)}`
}

function idOf(headers: Headers): string {
  return headers.get('x-carpool-invocation') ?? ''
}

function codeOf(headers: Headers, text: string): string {
  if (headers.get('content-type') !== 'application/problem+json') return ''
  try {
    return (JSON.parse(text) as Problem).code
  } catch {
    return 'unreadable'
  }
}
