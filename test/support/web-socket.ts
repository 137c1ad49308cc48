import { once } from 'node:events'
import type { Test } from 'tap'
import { type ClientOptions, WebSocket } from 'ws'

export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A real client, which keeps what it hears. */
export interface Client {
  readonly socket: WebSocket
  /** Resolves with the next message that nobody has asked for yet. */
  next(): Promise<string | Buffer>
  readonly closed: Promise<Closed>
}

/** Connects a client. @throws Error if the server refuses; its message has the status */
export async function connectTo(t: Test, url: string, protocols: string[] = [], options: ClientOptions = {}): Promise<Client> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, { perMessageDeflate: false, ...options })
  t.teardown(() => socket.terminate())
  const heard: (string | Buffer)[] = []
  const waiting: ((message: string | Buffer) => void)[] = []
  socket.on('message', (data: Buffer, isBinary) => {
    const message = isBinary ? data : data.toString()
    const resolve = waiting.shift()
    if (resolve === undefined) heard.push(message)
    else resolve(message)
  })
  const closed = new Promise<Closed>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  await once(socket, 'open')
  socket.on('error', () => {})
  const next = (): Promise<string | Buffer> =>
    new Promise((resolve) => {
      const message = heard.shift()
      if (message === undefined) waiting.push(resolve)
      else resolve(message)
    })
  return { socket, next, closed }
}
