import { Agent, request } from 'node:http'

export interface CallResult {
  /** On the monotonic clock of this process. */
  readonly startMs: number
  /** Until the last byte of the answer, or the error. */
  readonly durationMs: number
  /** Undefined if there was no answer. */
  readonly status: number | undefined
  readonly body: string
  readonly error?: string
}

export interface CallerOptions {
  /** Most connections at the same time; default: one for each call that is under way. */
  readonly maxConnections?: number
}

/** Calls a server over connections that are kept and used again. A failed call is a result, not an exception. */
export class Caller implements Disposable {
  readonly #agent: Agent

  constructor({ maxConnections = Number.POSITIVE_INFINITY }: CallerOptions = {}) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: maxConnections, maxFreeSockets: Number.MAX_SAFE_INTEGER })
  }

  call(url: string): Promise<CallResult> {
    const { promise, resolve } = Promise.withResolvers<CallResult>()
    const startMs = performance.now()
    const settle = (result: Pick<CallResult, 'status' | 'body' | 'error'>): void =>
      resolve({ startMs, durationMs: performance.now() - startMs, ...result })
    request(url, { agent: this.#agent })
      .on('response', (response) => {
        let body = ''
        response
          .setEncoding('utf8')
          .on('data', (text: string) => {
            body += text
          })
          .on('end', () => settle({ status: response.statusCode, body }))
          .on('error', (error) => settle({ status: response.statusCode, body, error: errorText(error) }))
      })
      .on('error', (error) => settle({ status: undefined, body: '', error: errorText(error) }))
      .end()
    return promise
  }

  /** Sends all calls in one turn of the event loop. */
  callAtOnce(url: string, count: number): Promise<CallResult[]> {
    return Promise.all(Array.from({ length: count }, () => this.call(url)))
  }

  /** Makes `count` calls and keeps `atOnce` of them under way: each that is answered makes room for the next. */
  async callInTurns(url: string, count: number, atOnce: number): Promise<CallResult[]> {
    const results: CallResult[] = []
    let left = count
    const callOn = async (): Promise<void> => {
      while (left > 0) {
        left--
        results.push(await this.call(url))
      }
    }
    await Promise.all(Array.from({ length: atOnce }, callOn))
    return results
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}

export function isOk({ status, error }: CallResult): boolean {
  return error === undefined && status !== undefined && status >= 200 && status < 300
}

/** Says what went wrong, each thing once with its count; empty if all went well. */
export function failureLines(results: readonly CallResult[]): string[] {
  const failed = results.filter((result) => !isOk(result))
  const texts = failed.map(({ status, error, body }) => error ?? `status ${status}: ${body.slice(0, 200)}`)
  return [...Map.groupBy(texts, (text) => text.replaceAll(/"?invocationId"?\s*:\s*"[^"]*",?/g, ''))].map(
    ([text, { length }]) => `${length} x ${text}`,
  )
}

function errorText(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message
}
