import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** The loopback address that functions may fetch from: the canaries listen on another. */
export const UPSTREAM_HOST = '127.0.0.2'

export interface Upstream {
  /** With a slash at the end. */
  readonly url: string
  /** Heads of the requests that came, the newest last; at most a thousand. */
  readonly seen: readonly { readonly url: string; readonly headers: IncomingMessage['headers'] }[]
  /** How many came. */
  readonly count: () => number
  /** Open connections now. */
  readonly connections: () => Promise<number>
}

const KEPT = 1000

/**
 * Answers `pong` and what stands after `?`. With `/hold` it never answers, `/bytes/<count>` so many bytes.
 * @param also tried first; true: it has answered
 */
export async function startUpstream(t: Test, also?: (...of: Parameters<RequestListener>) => boolean): Promise<Upstream> {
  const seen: { url: string; headers: IncomingMessage['headers'] }[] = []
  let count = 0
  const server = createServer((request, response) => {
    const { url = '', headers } = request
    count++
    seen.push({ url, headers })
    if (seen.length > KEPT) seen.shift()
    request.resume()
    if (also?.(request, response) === true || url.startsWith('/hold')) return
    const [, bytes] = /^\/bytes\/(\d+)/.exec(url) ?? []
    if (bytes !== undefined) response.end(Buffer.alloc(Number(bytes), 'x'))
    else response.end(`pong ${url.split('?')[1] ?? ''}`)
  })
  await new Promise<void>((resolve) => server.listen(0, UPSTREAM_HOST, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${UPSTREAM_HOST}:${port}/`,
    seen,
    count: () => count,
    connections: () =>
      new Promise((resolve, reject) => server.getConnections((error, n) => (error ? reject(error) : resolve(n)))),
  }
}
