import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'

/** Clients that connect at the same time. */
const CONNECTING = 50
const EVENT_END = '\n\n'
const OPEN = `: open${EVENT_END}`

/** Clients that have been told that they are connected, and to which nothing is said any more. */
export interface IdleClients extends Disposable {
  /** @throws Error if any of them was disconnected, or was sent something */
  check(): void
}

/** Connects clients, a few at a time. They are sockets, which take less of this process than those of node:http. */
export async function connectIdle(url: string, count: number): Promise<IdleClients> {
  const sockets: Socket[] = []
  let failure: Error | undefined
  const fail = (why: string): void => void (failure ??= new Error(`An idle client ${why}.`))
  while (sockets.length < count) {
    const length = Math.min(CONNECTING, count - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length }, () => open(url, fail)))))
  }
  return {
    check: () => {
      if (failure !== undefined) throw failure
    },
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.removeAllListeners('close').destroy()
    },
  }
}

async function open(url: string, fail: (why: string) => void): Promise<Socket> {
  const { hostname, port, host, pathname } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('latin1')
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  let text = ''
  while (!text.includes(OPEN)) {
    const [added] = (await once(socket, 'data')) as [string]
    text += added
    if (!text.startsWith('HTTP/1.1 200')) throw new Error(`A client was answered: ${text.slice(0, 500)}`)
  }
  // The rest of a chunk may come in a part of its own.
  return socket
    .on('data', (added: string) => {
      if (added.trim() !== '') fail(`was sent ${JSON.stringify(added)}`)
    })
    .on('error', ({ message }) => fail(`failed: ${message}`))
    .on('close', () => fail('was disconnected'))
}

/**
 * Reads events until the last one.
 * @returns time from when each was written to when it arrived, in ms, by the machine's clock, which both sides read to the
 * nanosecond
 */
export async function timeEvents(url: string, count: number): Promise<number[]> {
  const latencies: number[] = []
  const [response] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`${url} was answered with ${response.statusCode}.`)
  let unread = ''
  response.setEncoding('latin1').on('data', (text: string) => {
    const arrivedNs = Temporal.Now.instant().epochNanoseconds
    const events = (unread + text).split(EVENT_END)
    unread = events.pop() ?? ''
    for (const event of events) latencies.push(Number(arrivedNs - BigInt(event.slice('data: '.length))) / 1e6)
  })
  await once(response, 'end')
  if (latencies.length !== count) throw new Error(`Of ${count} events ${latencies.length} have come.`)
  return latencies
}
