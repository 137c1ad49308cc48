/** WebSockets: floods of frames, clients that do not read, functions that send without end. */
import { connectTo } from '../../support/web-socket.ts'
import type { CaseContext, IsolationCase } from '../harness/isolation-case.ts'
import { bursts } from './flood-kit.ts'

const ACCEPTS = `if (request.headers.get('upgrade') !== 'websocket') return new Response('fine')
  const [client, server] = Object.values(new WebSocketPair())
  server.accept()
  let heard = 0`
const ANSWERS = `; return new Response(null, { status: 101, webSocket: client })`

/** Opens a WebSocket, does something with it, and calls the function once more. */
function webSocket(
  id: string,
  title: string,
  handler: string,
  use: (client: Awaited<ReturnType<typeof connectTo>>, context: CaseContext) => Promise<unknown>,
  more: Partial<IsolationCase> = {},
): IsolationCase {
  return {
    ...bursts(id, title, ''),
    handler: `${ACCEPTS}; ${handler}${ANSWERS}`,
    attack: async (context) => {
      const client = await connectTo(context.t, `${context.rig.server.url}/${context.name}/`)
      await use(client, context)
      client.socket.terminate()
      return { answers: [await context.call()] }
    },
    ...more,
  }
}

/** An empty message, masked. */
const EMPTY_FRAME = Buffer.from([0x82, 0x80, 0, 0, 0, 0])
const PING_FRAME = Buffer.from([0x89, 0x80, 0, 0, 0, 0])
const FRAMES = 20_000

function rawSocketOf(client: { readonly socket: object }): { write(bytes: Buffer): boolean } {
  return (client.socket as { _socket: { write(bytes: Buffer): boolean } })._socket
}

const COUNTS = `server.onmessage = ({ data }) => { heard++; if (data === 'count') server.send(String(heard)) }`

export const WEB_SOCKET_CASES: readonly IsolationCase[] = [
  webSocket('W01a', 'twenty thousand empty messages at once', COUNTS, async (client, { t }) => {
    rawSocketOf(client).write(Buffer.concat(Array.from({ length: FRAMES }, () => EMPTY_FRAME)))
    client.socket.send('count')
    t.equal(await client.next(), String(FRAMES + 1))
  }),
  webSocket('W01b', 'two hundred thousand pings of a client that reads no answer', COUNTS, async (client, { t }) => {
    client.socket.pause()
    const pings = Buffer.concat(Array.from({ length: FRAMES }, () => PING_FRAME))
    for (let count = 0; count < 10; count++) rawSocketOf(client).write(pings)
    client.socket.send('count')
    client.socket.resume()
    t.equal(await client.next(), '1')
  }),
  webSocket(
    'W02a',
    'a client that reads nothing of thirty megabytes',
    `server.onmessage = () => { try { for (;;) server.send('x'.repeat(1e6)) } catch (error) { console.log(error.name) } }`,
    async (client, { rig, name }) => {
      client.socket.pause()
      client.socket.send('go')
      await rig.server.untilLogged(name, /QuotaExceededError/)
    },
    { limits: { cpuMs: 5_000, wallMs: 20_000, memoryMb: 256 } },
  ),
  webSocket('W03a', 'messages that never end, each a byte at a time', COUNTS, async (client) => {
    const socket = rawSocketOf(client)
    // A message of a megabyte, of which a byte comes with each write.
    socket.write(Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0]))
    for (let count = 0; count < 10_000; count++) {
      socket.write(Buffer.from([0]))
      if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }),
]
