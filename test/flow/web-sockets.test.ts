/** WebSockets into functions, from the handshake to the record. */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import t from 'tap'
import { rowsOf } from '../support/ledger.ts'
import { startServer, until } from '../support/server.ts'
import { connectTo } from '../support/web-socket.ts'

const ECHO = `
  let open = 0
  export default {
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/open') return new Response(String(open))
      if (request.headers.get('upgrade') !== 'websocket') return new Response('no WebSocket', { status: 426 })
      if (pathname === '/private') return new Response('who are you?', { status: 401 })
      if (pathname === '/never') await new Promise(() => {})
      const [client, server] = Object.values(new WebSocketPair())
      server.accept()
      open++
      server.addEventListener('close', ({ code, reason, wasClean }) => {
        open--
        console.log('closed', code, reason, wasClean)
      })
      server.addEventListener('message', ({ data }) => {
        if (data === 'close') return server.close(4002, 'as you wish')
        if (data === 'spin') for (;;);
        if (data === 'throw') throw new Error('of a handler')
        if (data === 'grow') { const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length + 0.5)) }
        if (data === 'who') return server.send(request.headers.get('origin') + ' ' + server.readyState)
        if (data === 'flood') { for (let i = 0; i < 100; i++) server.send('x'.repeat(10_000)); return }
        server.send(data)
      })
      const protocol = searchParams.get('protocol')
      return new Response(null, { status: 101, webSocket: client, headers: protocol ? { 'sec-websocket-protocol': protocol } : {} })
    },
  }`
/** The folder of the repository that has Hono. */
const honoPath = createRequire(new URL('../../examples/package.json', import.meta.url)).resolve('hono')
const HONO = `
  import { Hono } from ${JSON.stringify(honoPath)}
  import { upgradeWebSocket } from ${JSON.stringify(honoPath.replace(/[^/]*$/, 'adapter/cloudflare-workers/index.js'))}
  const app = new Hono()
  app.get('/ws', upgradeWebSocket(() => ({
    onMessage(event, socket) {
      if (event.data === 'close') return socket.close(3001, 'enough')
      socket.send('hono says ' + event.data)
    },
    onClose: () => console.log('hono closed'),
  })))
  export default app`

const OPENS = `export default {
  fetch: (request) => new Promise((resolve) => {
    const told = []
    const heard = ['message']
    const socket = new WebSocket(new URL(request.url).searchParams.get('to'), ['a', 'b'])
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => {
      told.push(['open', socket.protocol])
      for (const message of ['one', 'two', 'x'.repeat(100_000), new Uint8Array([1, 2, 3])]) socket.send(message)
    }
    socket.onmessage = ({ data }) => {
      heard.push(typeof data === 'string' ? (data.length > 100 ? data.length : data) : String(new Uint8Array(data)))
      if (heard.length === 5) socket.send('close')
    }
    socket.onerror = () => told.push(['error'])
    socket.onclose = ({ code, reason, wasClean }) => {
      if (heard.length > 1) told.push(heard)
      told.push(['close', code, reason, wasClean])
      resolve(Response.json(told))
    }
  }),
}`
const CONFIG = '{"cpuMs": 1000, "memoryMb": 64}'

t.test('WebSockets', async (t) => {
  const server = await startServer(t, ['--allow-egress', '127.0.0.1/32'])
  const files = { 'index.js': ECHO, 'carpool.config.json': CONFIG }
  await server.deploy('echo', files)
  const url = `${server.url}/echo/`

  await t.test('messages of text and bytes go both ways, of any size, whole or in fragments', async (t) => {
    const { socket, next, closed } = await connectTo(t, url, [], { headers: { origin: 'https://a.example' } })
    for (const text of ['hi', '', 'grüße 👋', 'x'.repeat(1024 * 1024), 'ü'.repeat(200_000)]) {
      socket.send(text)
      t.ok((await next()) === text, `${text.length} characters`)
    }
    const pongs: string[] = []
    socket.on('pong', (data: Buffer) => pongs.push(data.toString()))
    const bytes = Buffer.alloc(1024 * 1024, 'abc\xff\x00', 'latin1')
    socket.send(bytes)
    t.ok(bytes.equals((await next()) as Buffer))
    for (const part of ['one ', 'two ']) socket.send(part, { fin: false })
    socket.ping('in between')
    socket.send('three')
    t.equal(await next(), 'one two three')
    socket.ping('there?')
    await until(() => Promise.resolve(pongs.length === 2))
    t.strictSame(pongs, ['in between', 'there?'])
    socket.send('who')
    t.equal(await next(), 'https://a.example 1')
    socket.close(4001, 'bye')
    t.strictSame(await closed, { code: 4001, reason: '' })
    await server.untilLogged('echo', /closed 4001 bye true/)
  })

  await t.test('the function closes with a code and a reason', async (t) => {
    const { socket, closed } = await connectTo(t, url)
    socket.send('close')
    t.strictSame(await closed, { code: 4002, reason: 'as you wish' })
    await server.untilLogged('echo', /closed 4002 as you wish true/)
  })

  await t.test('a client that vanishes, and its record', async (t) => {
    const { socket, next } = await connectTo(t, url)
    socket.send('12345')
    await next()
    socket.terminate()
    await server.untilLogged('echo', /closed 1006 {2}false/)
    await until(async () => (await (await server.get('/echo/open')).text()) === '0')
    await server.recorded()
    const rows = await rowsOf(server, 'echo')
    t.match(
      rows.filter(({ status }) => status === 101).map(({ outcome, bytes_in, bytes_out }) => [outcome, bytes_in, bytes_out]),
      [
        ['ok', Number, Number],
        ['ok', 5, 0],
        ['canceled', 5, 5],
      ],
    )
  })

  await t.test('other answers refuse', async (t) => {
    await t.rejects(connectTo(t, `${url}private`), { message: /401/ })
    await t.rejects(connectTo(t, `${url}?protocol=b`, ['a', 'c']), { message: /502/ })
    await t.rejects(connectTo(t, `${server.url}/none/`), { message: /404/ })
    await server.deploy('hurried', { 'index.js': ECHO, 'carpool.config.json': '{"timeoutMs": 500}' })
    await t.rejects(connectTo(t, `${server.url}/hurried/never`), { message: /504/ })
    const { socket } = await connectTo(t, `${url}?protocol=b`, ['a', 'b'])
    t.equal(socket.protocol, 'b')
    t.equal(socket.extensions, '', 'compression is not offered')
    socket.terminate()
    t.equal((await server.get('/echo/')).status, 426)
  })

  await t.test('what a handler throws is logged, and the WebSocket goes on', async (t) => {
    const { socket, next } = await connectTo(t, url)
    socket.send('throw')
    socket.send('still here')
    t.equal(await next(), 'still here')
    await server.untilLogged('echo', /of a handler/)
    socket.terminate()
  })

  for (const [message, limit, outcome] of [
    ['spin', /CPU.* limit of 1000 ms/, 'cpu-exceeded'],
    ['grow', /memory limit|limit of 64/i, 'memory-exceeded'],
  ] as const) {
    await t.test(`a handler that passes its limit: ${outcome}`, async (t) => {
      const { socket, closed } = await connectTo(t, url)
      socket.send(message)
      const { code, reason } = await closed
      t.equal(code, 1008)
      t.match(reason, limit)
      await server.recorded()
      t.match((await rowsOf(server, 'echo')).at(-1), { status: 101, outcome })
    })
  }

  await t.test('time limits: of silence, and of the whole', async (t) => {
    await server.deploy('idle', { 'index.js': ECHO, 'carpool.config.json': '{"idleMs": 300}' })
    await server.deploy('short', { 'index.js': ECHO, 'carpool.config.json': '{"streamMs": 300}' })
    for (const [name, limit] of [
      ['idle', /300 ms/],
      ['short', /300 ms/],
    ] as const) {
      const { closed } = await connectTo(t, `${server.url}/${name}/`)
      const { code, reason } = await closed
      t.equal(code, 1008)
      t.match(reason, limit)
    }
  })

  await t.test('frames that break the protocol', async (t) => {
    for (const [what, frame, code] of [
      ['no mask', [0x81, 0x01, 0x61], 1002],
      ['a reserved bit', [0xc1, 0x80, 0, 0, 0, 0], 1002],
      ['text that is none', [0x81, 0x81, 0, 0, 0, 0, 0xff], 1007],
      ['too much', [0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 1009],
    ] as const) {
      const answer = await rawFrames(server.url, '/echo/', Buffer.from(frame))
      t.equal(answer.readUInt16BE(2), code, what)
    }
    await until(async () => (await (await server.get('/echo/open')).text()) === '0')
  })

  await t.test('over a deploy, open ones go on in the old revision', async (t) => {
    const before = await connectTo(t, url)
    await server.deploy('echo', {
      ...files,
      'index.js': ECHO.replace('server.send(data)', `server.send(typeof data === 'string' ? 'new ' + data : data)`),
    })
    before.socket.send('x')
    t.equal(await before.next(), 'x')
    const after = await connectTo(t, url)
    after.socket.send('x')
    t.equal(await after.next(), 'new x')
    before.socket.close()
    after.socket.close()
    await Promise.all([before.closed, after.closed])
  })

  await t.test("Hono's upgradeWebSocket", async (t) => {
    await server.deploy('hono', HONO)
    const { socket, next, closed } = await connectTo(t, `${server.url}/hono/ws`)
    socket.send('hi')
    t.equal(await next(), 'hono says hi')
    socket.send('close')
    t.match(await closed, { code: 3001, reason: 'enough' })
    t.equal((await server.get('/hono/ws')).status, 404)
  })

  await t.test('a function opens a WebSocket, here to another function', async (t) => {
    await server.deploy('opens', OPENS)
    const to = encodeURIComponent(`${server.url.replace('http', 'ws')}/echo/?protocol=b`)
    t.strictSame(await (await server.get(`/opens/?to=${to}`)).json(), [
      ['open', 'b'],
      ['message', 'new one', 'new two', 100_004, '1,2,3'],
      ['close', 4002, 'as you wish', true],
    ])
    const refused = encodeURIComponent(`ws://127.0.0.1:1/`)
    t.match(await (await server.get(`/opens/?to=${refused}`)).json(), [['error'], ['close', 1006, '', false]])
  })

  await t.test('a slow reader is bounded, and hurts nobody', async (t) => {
    const slow = await connectTo(t, url)
    slow.socket.pause()
    for (let count = 0; count < 5; count++) slow.socket.send('flood')
    const other = await connectTo(t, url)
    other.socket.send('hi')
    t.equal(await other.next(), 'new hi')
    slow.socket.resume()
    for (let count = 0; count < 500; count++) if (((await slow.next()) as string).length !== 10_000) t.fail('not whole')
    slow.socket.terminate()
    other.socket.terminate()
  })

  await t.test('a host that is killed', async (t) => {
    const { closed } = await connectTo(t, url)
    const [host] = (await server.info()).hosts
    process.kill(host?.pid ?? 0, 'SIGKILL')
    t.match(await closed, { code: 1011, reason: /host/ })
  })

  await t.test('shutdown', async (t) => {
    const { socket, next, closed } = await connectTo(t, url)
    socket.send('x')
    await next()
    const ended = server.stop('SIGTERM')
    t.match(await closed, { code: 1001 })
    t.equal((await ended).code, 0)
  })
})

/** Opens a WebSocket by hand, sends bytes, and reads until the connection ends. @returns what came behind the handshake */
async function rawFrames(url: string, path: string, bytes: Uint8Array): Promise<Buffer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const head = [
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${'A'.repeat(22)}==`,
  ]
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n${head.join('\r\n')}\r\n\r\n`)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => {
    if (chunks.push(chunk) === 1) socket.write(bytes)
  })
  await once(socket, 'end')
  socket.destroy()
  const all = Buffer.concat(chunks)
  return all.subarray(all.indexOf('\r\n\r\n') + 4)
}
