/** The client's side of WebSockets, with a function that does what the test says. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import {
  NO_USAGE,
  RoundRobin,
  STREAM_MESSAGE_BYTES,
  STREAM_WINDOW_BYTES,
  type Call,
  type CallerSocket,
  type FunctionSocket,
} from '@carpool/core'
import t, { type Test } from 'tap'
import { ByteBudget } from '../src/byte-budget.ts'
import { Sweep } from '../src/hardening/slow-clients.ts'
import { createGateway } from '../src/index.ts'
import { frameOf } from '../src/web-socket/frames.ts'
import { IdlePings } from '../src/web-socket/idle-pings.ts'
import { ClientWebSocket } from '../src/web-socket/web-socket.ts'
import { LIMITS, recordOf } from './support/gateway.ts'

/** What a function hears. */
class Heard implements FunctionSocket {
  readonly parts: Array<readonly [kind: string, bytes: number, more: boolean]> = []
  caller!: CallerSocket
  credited = 0
  closing: readonly [code: number, reason: string] | undefined
  /** Called with what comes. */
  onPart: (bytes: Uint8Array, more: boolean) => void = () => {}
  onClosed: () => void = () => {}

  part(kind: string, bytes: Uint8Array, more: boolean): void {
    this.parts.push([kind, bytes.length, more])
    this.onPart(bytes, more)
  }

  credit(bytes: number): void {
    this.credited += bytes
  }

  closed(code: number, reason: string): void {
    this.closing = [code, reason]
    this.onClosed()
  }
}

interface Opened {
  readonly call: Call
  readonly heard: Heard
  readonly client: Socket
}

interface Opening {
  readonly maxBodyBytes?: number
  /** What it sends in one packet with its request. */
  readonly behind?: string
  readonly heard?: Heard
  /** Called between the request and the function's yes. Default: it says yes while its request is handed over. */
  readonly meanwhile?: (port: number) => Promise<void>
}

/** A client whose WebSocket a function has accepted. */
async function open(t: Test, options: Opening = {}): Promise<Opened> {
  const { maxBodyBytes = 1_000_000, behind = '', heard = new Heard(), meanwhile } = options
  const called = Promise.withResolvers<Call>()
  const accept = (call: Call): void => {
    const accepted = call.acceptWebSocket({ status: 101, headers: [['x-mine', 'yes']] }, heard)
    if (typeof accepted !== 'object') throw new Error(accepted)
    heard.caller = accepted
  }
  const app = createGateway({
    invoke: (call) => {
      if (meanwhile === undefined) accept(call)
      called.resolve(call)
    },
    limits: { ...LIMITS, maxBodyBytes },
    onFault: (error) => t.fail(error.message),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const head = [
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${'A'.repeat(22)}==`,
  ]
  client.write(`GET /f/ HTTP/1.1\r\nhost: a\r\n${head.join('\r\n')}\r\n\r\n${behind}`, 'latin1')
  const call = await called.promise
  if (meanwhile !== undefined) {
    await meanwhile(port)
    accept(call)
  }
  const [answer] = (await once(client, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1.1 101 [^]*x-mine: yes\r\n/)
  return { call, heard, client }
}

function end(call: Call, outcome: 'ok' | 'timeout' = 'ok'): void {
  call.record = recordOf(call.id)
  call.result =
    outcome === 'ok'
      ? { outcome, start: 'warm', usage: NO_USAGE, response: { status: 101, headers: [], body: new Uint8Array(0) } }
      : { outcome, start: 'warm', usage: NO_USAGE, detail: 'The limit of 5 ms.' }
  call.end(undefined)
}

/** A frame of a client, with a mask of zeros. */
function masked(opcode: number, payload: Uint8Array): Buffer {
  const frame = Buffer.concat(frameOf(opcode, payload))
  const headBytes = frame.length - payload.length
  frame[1] = (frame[1] ?? 0) | 0x80
  return Buffer.concat([frame.subarray(0, headBytes), Buffer.alloc(4), payload])
}

t.test('what came behind the request is not what another client sends before the function says yes', async (t) => {
  const heard = new Heard()
  const parts: string[] = []
  heard.onPart = (part) => parts.push(Buffer.from(part).toString())
  await open(t, {
    heard,
    behind: masked(1, Buffer.from('mine'.repeat(20))).toString('latin1'),
    meanwhile: async (port) => {
      const other = connect(port, '127.0.0.1')
      other.write(`${'theirs'.repeat(500)}\r\n\r\n`)
      await once(other, 'data')
      other.destroy()
    },
  })
  while (parts.length === 0) await new Promise((resolve) => setImmediate(resolve))
  t.same(parts, ['mine'.repeat(20)])
})

t.test('no more goes to the function than it takes, and then the client is not read', async (t) => {
  const { heard, client } = await open(t)
  const windowed = Promise.withResolvers<void>()
  let bytes = 0
  heard.onPart = (part) => {
    bytes += part.length
    if (bytes > STREAM_WINDOW_BYTES - 2 * STREAM_MESSAGE_BYTES) windowed.resolve()
  }
  client.write(masked(2, Buffer.alloc(900_000)))
  await windowed.promise
  t.equal(bytes, STREAM_WINDOW_BYTES - STREAM_MESSAGE_BYTES)
  t.ok(heard.parts.every(([, length, more]) => more && length <= 64 * 1024))
  const whole = Promise.withResolvers<void>()
  heard.onPart = (part, more) => {
    bytes += part.length
    setImmediate(() => heard.caller.credited(part.length))
    if (!more) whole.resolve()
  }
  heard.caller.credited(bytes)
  await whole.promise
  t.equal(bytes, 900_000)
})

t.test('what comes in one packet with the request arrives, in its order', async (t) => {
  const sent = Array.from({ length: 40 }, (_, index) => Buffer.alloc(1000, index))
  const frames = sent.map((message) => masked(2, message).toString('latin1')).join('')
  const received: Uint8Array[] = []
  const heard = new Heard()
  const whole = new Promise<void>((resolve) => {
    heard.onPart = (part) => {
      if (received.push(part) === sent.length) resolve()
    }
  })
  await open(t, { behind: frames, heard })
  await whole
  t.ok(Buffer.concat(received).equals(Buffer.concat(sent)))
})

t.test('what a client says before it leaves waits for the function, and its leaving behind that', async (t) => {
  const { call, heard, client } = await open(t)
  const told: string[] = []
  const windowed = Promise.withResolvers<void>()
  const canceled = Promise.withResolvers<void>()
  call.holder = {
    cancel: () => {
      told.push('left')
      canceled.resolve()
    },
  }
  let bytes = 0
  heard.onPart = (part, more) => {
    bytes += part.length
    if (bytes === STREAM_WINDOW_BYTES - STREAM_MESSAGE_BYTES) windowed.resolve()
    if (!more) told.push('message')
  }
  client.end(masked(2, Buffer.alloc(300_000)))
  await windowed.promise
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  heard.caller.credited(STREAM_WINDOW_BYTES)
  await canceled.promise
  t.same(told, ['message', 'left'])
  end(call)
})

t.test('empty messages count, too', async (t) => {
  const { heard, client } = await open(t)
  const count = STREAM_WINDOW_BYTES / STREAM_MESSAGE_BYTES
  const full = Promise.withResolvers<void>()
  heard.onPart = () => {
    if (heard.parts.length === count - 1) full.resolve()
  }
  client.write(Buffer.concat(Array.from({ length: count * 2 }, () => masked(1, Buffer.alloc(0)))))
  await full.promise
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(heard.parts.length, count - 1)
  const rest = Promise.withResolvers<void>()
  heard.onPart = () => {
    heard.caller.credited(STREAM_MESSAGE_BYTES)
    if (heard.parts.length === count * 2) rest.resolve()
  }
  heard.caller.credited(STREAM_WINDOW_BYTES)
  await rest.promise
})

t.test('the close frame of a client is answered when the call has ended', async (t) => {
  const { call, heard, client } = await open(t)
  const closed = Promise.withResolvers<void>()
  heard.onClosed = closed.resolve
  let answered = false
  client.once('data', () => (answered = true))
  client.write(masked(8, Buffer.from([0x0f, 0xa1, 0x68, 0x69])))
  await closed.promise
  t.strictSame([heard.closing, answered], [[4001, 'hi'], false])
  const answer = once(client, 'data')
  end(call)
  t.same(await answer, [Buffer.from([0x88, 2, 0x0f, 0xa1])])
  await once(client, 'end')
})

t.test('a limit closes with 1008 and its name', async (t) => {
  const { call, client } = await open(t)
  const answer = once(client, 'data') as Promise<[Buffer]>
  end(call, 'timeout')
  const [frame] = await answer
  t.strictSame([frame.readUInt16BE(2), frame.subarray(4).toString()], [1008, 'The limit of 5 ms.'])
  const ended = once(client, 'end')
  client.write(masked(8, Buffer.from([0x03, 0xf0])))
  await ended
})

t.test('a client that leaves, or breaks the protocol, cancels the call', async (t) => {
  for (const leave of [
    (client: Socket) => client.end(),
    (client: Socket) => client.resetAndDestroy(),
    (client: Socket) => client.write(Buffer.from([0xff, 0])),
  ]) {
    const { call, client } = await open(t)
    const canceled = new Promise<void>((resolve) => (call.holder = { cancel: () => resolve() }))
    leave(client)
    await canceled
    end(call)
  }
})

t.test('a host that sends more than the client takes has the connection cut', async (t) => {
  const { heard, client } = await open(t)
  client.pause()
  const cut = once(client, 'close')
  for (let count = 0; count < 5; count++) heard.caller.send('bytes', Buffer.alloc(64 * 1024), false)
  client.resume()
  client.on('error', () => {})
  await cut
})

t.test('what the client has taken is credited', async (t) => {
  const { heard, client } = await open(t)
  let received = 0
  const all = Promise.withResolvers<void>()
  client.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received >= 10 * 20_000) all.resolve()
  })
  for (let count = 0; count < 10; count++) heard.caller.send('bytes', Buffer.alloc(20_000), false)
  await all.promise
  t.ok(heard.credited >= 10 * 20_000 - 64 * 1024 && heard.credited <= 10 * (20_000 + STREAM_MESSAGE_BYTES), `${heard.credited}`)
})

t.test('a client that takes its time gets what was sent before the close frame', async (t) => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
  const [socket] = (await once(server, 'connection')) as [Socket]
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  let nowMs = 0
  let onLook = (): void => {}
  const sweep = new Sweep(() => {
    onLook()
    return nowMs
  })
  const clock = (): number => nowMs
  const ended = new ClientWebSocket(
    socket,
    { owner: 'default', functionName: 'f' },
    { part: () => {}, closed: () => {}, lost: () => {}, credit: (bytes) => void (creditBytes += bytes) },
    {
      maxMessageBytes: 1_000_000,
      turns: new RoundRobin({ turnMs: 1, clock, nextTurn: setImmediate }),
      budget: new ByteBudget(100_000_000),
      sweep,
      pings: new IdlePings({ clock, idleMs: 1_000_000, every: () => ({ stop: () => {} }) }),
      clock,
      stallMs: 1_000_000,
    },
  )
  let [sentBytes, creditBytes] = [0, 0]
  // Until neither the system nor the window takes more.
  for (let before = -1; creditBytes > before; ) {
    before = creditBytes
    for (; sentBytes - before < 128 * 1024; sentBytes += 65_536)
      ended.send('bytes', Buffer.alloc(65_536 - STREAM_MESSAGE_BYTES), false)
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  }
  t.ok(socket.writableLength > 0)
  ended.close(4000, '')
  nowMs = 6_000
  for (let look = 0; look < 2; look++) await new Promise<void>((resolve) => (onLook = resolve))
  let last = Buffer.alloc(0)
  client.on('data', (chunk: Buffer) => (last = Buffer.concat([last, chunk]).subarray(-4)))
  client.resume()
  while (!last.equals(Buffer.of(0x88, 2, 0x0f, 0xa0)) && !client.closed) await new Promise(setImmediate)
  t.notOk(client.closed)
  nowMs = 12_000
  await once(client, 'end')
})

t.test('handshakes that are none', async (t) => {
  const app = createGateway({ invoke: () => t.fail('it was called'), limits: LIMITS, onFault: (error) => t.fail(error.message) })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo
  const good = {
    'connection': 'upgrade',
    'upgrade': 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': `${'A'.repeat(22)}==`,
  }
  for (const [what, headers, method] of [
    ['no key', { ...good, 'sec-websocket-key': '' }],
    ['a key that is too long', { ...good, 'sec-websocket-key': `${'A'.repeat(23)}=` }],
    ['another version', { ...good, 'sec-websocket-version': '8' }],
    ['another method', good, 'POST'],
    ['a protocol twice', { ...good, 'sec-websocket-protocol': 'a, a' }],
    ['a protocol that is none', { ...good, 'sec-websocket-protocol': 'a b' }],
    ['a body', { ...good, 'content-length': '1' }],
  ] as const) {
    const socket = connect(port, '127.0.0.1')
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    socket.write(`${method ?? 'GET'} /f/ HTTP/1.1\r\nhost: a\r\n${lines.join('\r\n')}\r\n\r\n`)
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    t.match(answer, /^HTTP\/1.1 400 /, what)
    t.match(answer, /sec-websocket-version: 13\r\n/)
    t.match(answer, /x-carpool-error: bad-request\r\n/)
  }
})
