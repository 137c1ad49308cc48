import { once } from 'node:events'
import { WebSocket } from 'ws'

/** Clients that connect at the same time. */
const CONNECTING = 50

/** Connects clients, a few at a time. */
export async function connectClients(url: string, count: number): Promise<WebSocket[]> {
  const sockets: WebSocket[] = []
  while (sockets.length < count) {
    const added = Array.from(
      { length: Math.min(CONNECTING, count - sockets.length) },
      () => new WebSocket(url, { perMessageDeflate: false }),
    )
    await Promise.all(added.map((socket) => once(socket, 'open')))
    sockets.push(...added)
  }
  return sockets
}

export interface EchoRun {
  readonly messagesPerSecond: number
  /** Time from each message to its echo, in ms. */
  readonly latencies: readonly number[]
}

/** Has each client send a message when the one before has come back. */
export async function echo(sockets: readonly WebSocket[], text: string, durationMs: number): Promise<EchoRun> {
  const latencies: number[] = []
  const fromMs = performance.now()
  const endsAtMs = fromMs + durationMs
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve, reject) => {
          let sentAtMs = 0
          const send = (): void => {
            sentAtMs = performance.now()
            socket.send(text)
          }
          const onMessage = (data: Buffer): void => {
            const nowMs = performance.now()
            latencies.push(nowMs - sentAtMs)
            if (data.length !== text.length) reject(new Error(`An echo has ${data.length} bytes.`))
            if (nowMs < endsAtMs) return send()
            socket.off('message', onMessage)
            resolve()
          }
          socket.on('message', onMessage)
          socket.once('close', () => reject(new Error('A WebSocket was closed.')))
          send()
        }),
    ),
  )
  return { messagesPerSecond: (latencies.length / (performance.now() - fromMs)) * 1000, latencies }
}

export async function closeClients(sockets: readonly WebSocket[]): Promise<void> {
  await Promise.all(
    sockets.map(async (socket) => {
      socket.removeAllListeners('close')
      const closed = once(socket, 'close')
      socket.close()
      await closed
    }),
  )
}
