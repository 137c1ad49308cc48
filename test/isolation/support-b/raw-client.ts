import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A plain connection to the data plane, for requests that no HTTP client would send. */
export interface RawConnection {
  readonly socket: Socket
  /** All that came back so far, one character for each byte. */
  readonly received: string
  send(bytes: string | Buffer): void
  /** Resolves with all that came when it matches, or when the server has closed. */
  until(pattern: RegExp): Promise<string>
  /** Resolves with all that came when the server has closed. */
  untilClosed(): Promise<string>
}

export async function connectRaw(t: Test, url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  t.teardown(() => socket.destroy())
  const state = { received: '', isClosed: false }
  const watchers = new Set<() => void>()
  const changed = (): void => {
    for (const watcher of watchers) watcher()
  }
  const close = (): void => {
    state.isClosed = true
    changed()
  }
  socket.on('data', (chunk) => {
    state.received += chunk.toString('latin1')
    changed()
  })
  // A reset is an end as well.
  socket.on('error', close)
  socket.on('end', close)
  socket.on('close', close)
  const until = (isSo: () => boolean): Promise<string> =>
    new Promise((resolve) => {
      const watch = (): void => {
        if (!state.isClosed && !isSo()) return
        watchers.delete(watch)
        resolve(state.received)
      }
      watchers.add(watch)
      watch()
    })
  return {
    socket,
    get received() {
      return state.received
    },
    // What the server has closed takes nothing more, and says so in an error that is an end for us.
    send: (bytes) => void socket.write(bytes, () => {}),
    until: (pattern) => until(() => pattern.test(state.received)),
    untilClosed: () => until(() => false),
  }
}
