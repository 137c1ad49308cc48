/** A client that sends bytes as they are, and reads answers as strictly as a proxy would. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'

export interface RawAnswer {
  readonly status: number
  /** Names in lower case with their values, in order. */
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: string
}

export interface RawClient {
  readonly socket: Socket
  /** Sends bytes; each character is one. */
  send(text: string): void
  /** How many interim answers came, such as `100 Continue`. */
  readonly interim: number
  /** The next final answer; undefined if the connection ends before it. @param method of the request that it answers */
  answer(method?: string): Promise<RawAnswer | undefined>
  /** Resolves when the server has closed the connection, with what came since the last answer. */
  untilClosed(): Promise<string>
}

/** Connects to a server. Text that is no answer throws. @param localAddress where the client is; default: 127.0.0.1 */
export async function connectRaw(t: Test, url: string, localAddress = '127.0.0.1'): Promise<RawClient> {
  const { hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, localAddress, allowHalfOpen: true }).setEncoding('latin1')
  t.teardown(() => socket.destroy())
  let text = ''
  let interim = 0
  const state = { isOver: false }
  let wake = (): void => {}
  const over = (): void => {
    state.isOver = true
    wake()
  }
  socket.on('data', (chunk) => {
    text += String(chunk)
    wake()
  })
  socket.once('end', over)
  socket.once('close', over)
  // A server may reset a connection of which it does not read everything.
  socket.on('error', over)
  await once(socket, 'connect')
  const moved = (): Promise<void> => new Promise((resolve) => (wake = resolve))
  return {
    socket,
    get interim() {
      return interim
    },
    send: (bytes) => void socket.write(bytes, 'latin1'),
    answer: async (method = 'GET') => {
      for (;;) {
        const read = readAnswer(text, method)
        if (read !== undefined) {
          text = text.slice(read.length)
          if (read.answer.status >= 200) return read.answer
          interim++
        } else if (state.isOver) return undefined
        else await moved()
      }
    },
    untilClosed: async () => {
      while (!state.isOver) await moved()
      return text
    },
  }
}

/** @returns undefined if there is more to come */
function readAnswer(text: string, method: string): { answer: RawAnswer; length: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(first)?.[1])
  if (!Number.isInteger(status)) throw new Error(`This is no status line: ${JSON.stringify(first)}`)
  const headers = lines.map((line) => {
    const [, name = '', value = ''] = /^([!#$%&'*+\-.^_`|~\dA-Za-z]+): ?([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? []
    if (name === '') throw new Error(`This is no header: ${JSON.stringify(line)}`)
    return [name.toLowerCase(), value] as const
  })
  const lengths = headers.filter(([name]) => name === 'content-length')
  const hasNone = status < 200 || status === 204 || status === 304
  if (headers.some(([name]) => name === 'transfer-encoding')) throw new Error('The server never sends chunks.')
  if (lengths.length !== (hasNone ? 0 : 1)) throw new Error(`${lengths.length} lengths: ${text.slice(0, headEnd)}`)
  const length = hasNone || method === 'HEAD' ? 0 : Number(lengths[0]?.[1])
  const end = headEnd + 4 + length
  return text.length < end ? undefined : { answer: { status, headers, body: text.slice(headEnd + 4, end) }, length: end }
}
