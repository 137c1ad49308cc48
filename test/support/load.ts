import { Agent, request } from 'node:http'
import type { Test } from 'tap'

export interface Called {
  readonly status: number
  readonly body: string
  readonly retryAfter: string | undefined
  /** From when it was sent until all of its answer was there. */
  readonly ms: number
}

/** Keeps so many connections busy with calls, one after the other on each. */
export interface Load {
  /** What was answered so far; a call that failed has the status 0 and the reason as its body. */
  readonly answers: readonly Called[]
  /** Calls no more, and waits for what is under way. */
  stop(): Promise<readonly Called[]>
}

export function startLoad(t: Test, url: string, connections: number): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const answers: Called[] = []
  const state = { isStopped: false }
  const run = async (): Promise<void> => {
    while (!state.isStopped) answers.push(await callWith(agent, url))
  }
  const lanes = Promise.all(Array.from({ length: connections }, run))
  const stop = async (): Promise<readonly Called[]> => {
    state.isStopped = true
    await lanes
    agent.destroy()
    return answers
  }
  t.teardown(stop)
  return { answers, stop }
}

/** Calls once, and leaves after a while if there is no answer by then. */
export function callAndLeave(url: string, leaveAfterMs: number): Promise<'answered' | 'left'> {
  return new Promise((resolve) => {
    const call = request(url, { agent: false }, (response) => {
      response.resume().once('end', () => resolve('answered'))
    })
    call.once('error', () => resolve('left')).end()
    setTimeout(() => call.destroy(), leaveAfterMs)
  })
}

function callWith(agent: Agent, url: string): Promise<Called> {
  const startMs = performance.now()
  const ms = (): number => performance.now() - startMs
  return new Promise((resolve) => {
    const fail = (cause: Error): void => resolve({ status: 0, body: cause.message, retryAfter: undefined, ms: ms() })
    request(url, { agent }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.once('error', fail)
      response.once('end', () => {
        const { statusCode = 0, headers } = response
        resolve({ status: statusCode, body, retryAfter: headers['retry-after'], ms: ms() })
      })
    })
      .once('error', fail)
      .end()
  })
}
