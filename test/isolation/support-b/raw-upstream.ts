import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** Of the loopback ranges, the one that the servers of these tests open to functions. The others hold canaries. */
export const UPSTREAM_ADDRESS = '127.0.0.2'

/** A server that answers each request head with whatever bytes it likes. */
export interface RawUpstream {
  /** With a slash at the end. */
  readonly url: string
  readonly port: number
  /** The request heads that came, as they came; with what came of the body in the same chunk. */
  readonly requests: readonly string[]
  /**
   * Resolves when each connection on which a request came is closed: whoever fetched has let go of them. One that is opened in
   * reserve counts for nothing.
   */
  untilClosed(): Promise<void>
  /** Resolves when so many requests have come. */
  untilRequests(count: number): Promise<void>
}

/** @param answer is given the connection and the head of a request; it may write what it likes, or nothing, and close or not */
export async function startRawUpstream(
  t: Test,
  answer: (socket: Socket, head: string) => void,
  address: string = UPSTREAM_ADDRESS,
): Promise<RawUpstream> {
  const sockets = new Set<Socket>()
  const used = new Set<Socket>()
  const requests: string[] = []
  const watchers = new Set<() => void>()
  const changed = (): void => {
    for (const watcher of watchers) watcher()
  }
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = text
      text = ''
      requests.push(head)
      used.add(socket)
      changed()
      answer(socket, head)
    })
    // The other side lets go: so do we, whatever is still to be written.
    socket.on('end', () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      sockets.delete(socket)
      used.delete(socket)
      changed()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const watch = (): void => {
        if (!isSo()) return
        watchers.delete(watch)
        resolve()
      }
      watchers.add(watch)
      watch()
    })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${address}:${port}/`,
    port,
    requests,
    untilClosed: () => until(() => used.size === 0),
    untilRequests: (count) => until(() => requests.length >= count),
  }
}

/** Writes until the other side takes no more or closes: what must be ended by a limit there. */
export function writeForever(socket: Socket, chunk: Buffer | string): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
    if (!socket.destroyed) socket.once('drain', more)
  }
  more()
}

/** Writes one small piece again and again, slowly, until the other side closes. */
export function drip(socket: Socket, piece: string, everyMs: number): void {
  const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write(piece)), everyMs)
  socket.once('close', () => clearInterval(timer))
}
