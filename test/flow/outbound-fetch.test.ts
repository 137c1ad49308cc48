/** Functions fetch through the server, which decides where to. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startServer } from '../support/server.ts'

const PROXY = `
  export default {
    async fetch(request) {
      const target = new URL(request.url).searchParams.get('to')
      try {
        const response = await fetch(target, { method: 'POST', body: 'ping', headers: { 'x-from': 'function' } })
        return Response.json({ status: response.status, body: await response.text() })
      } catch (error) {
        return Response.json({ error: error.name, message: error.message })
      }
    }
  }`

const PONG: RequestListener = (request, response) => {
  let body = ''
  request.on('data', (chunk) => (body += String(chunk)))
  request.on('end', () => response.writeHead(201).end(`${request.method} ${String(request.headers['x-from'])} ${body} pong`))
}

async function upstream(t: Test, handler = PONG): Promise<string> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** They are shared, by functions with names of their own. */
const [open, closed] = await Promise.all([
  startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-body-bytes', '1000']),
  startServer(t),
])

t.test('a function fetches what the operator allows', async (t) => {
  const server = open
  await server.deploy('proxy', PROXY)
  const to = encodeURIComponent(await upstream(t))
  const answers = await Promise.all(Array.from({ length: 50 }, async () => (await server.get(`/proxy/?to=${to}`)).json()))
  for (const answer of answers) t.strictSame(answer, { status: 201, body: 'POST function ping pong' })
})

t.test('without leave a function reaches no private address', async (t) => {
  const server = closed
  await server.deploy('proxy', PROXY)
  const { port } = new URL(await upstream(t))
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '169.254.169.254']) {
    const to = encodeURIComponent(`http://${host}:${port}/`)
    t.match(await (await server.get(`/proxy/?to=${to}`)).json(), { error: 'TypeError' }, host)
  }
})

t.test('as many fetches of one upstream are under way as invocations wait for it', async (t) => {
  const count = 300
  const held: (() => void)[] = []
  const url = await upstream(t, (_request, response) => {
    held.push(() => response.end('released'))
    if (held.length === count) for (const release of held) release()
  })
  const server = open
  await server.deploy('waiting', `export default { fetch: () => fetch(${JSON.stringify(url)}) }`)
  const answers = await Promise.all(Array.from({ length: count }, async () => (await server.get('/waiting/')).text()))
  t.ok(answers.every((answer) => answer === 'released'))
})

const LYING_REQUESTS = [
  `Object.defineProperty(Request.prototype, 'redirect', { get: () => '"' }); await fetch('http://127.0.0.1/')`,
  `Object.defineProperty(Request.prototype, 'method', { get: () => 5 }); await fetch('http://127.0.0.1/')`,
  `class R extends Request { get url() {} }; await fetch(new R('http://127.0.0.1/'))`,
]

t.test('a function that lies about its request harms nobody', async (t) => {
  const server = closed
  await server.deploy('neighbour', `export default { fetch: () => new Response('ok') }`)
  for (const [number, lie] of LYING_REQUESTS.entries()) {
    await server.deploy(`lying-${number}`, `export default { async fetch() { ${lie} } }`)
    t.equal((await server.get(`/lying-${number}/`)).status, 500, lie)
    t.equal(await (await server.get('/neighbour/')).text(), 'ok')
  }
  const { hosts } = await server.info()
  t.ok(hosts.every(({ state }) => state === 'ready'))
})

/**
 * An upstream that never answers, except to say at `/arrived` that a fetch has come. `left` resolves when the fetch has ended.
 */
async function silentUpstream(t: Test): Promise<{ url: string; arrived: Promise<void>; left: Promise<unknown> }> {
  const arrived = Promise.withResolvers<void>()
  const left = Promise.withResolvers<unknown>()
  const url = await upstream(t, ({ url, socket }, response) => {
    if (url === '/arrived') return void arrived.promise.then(() => response.end())
    arrived.resolve()
    left.resolve(once(socket, 'close'))
  })
  return { url, arrived: arrived.promise, left: left.promise }
}

t.test('a fetch ends with the invocation that waits for it', async (t) => {
  const server = open
  const waiting = (url: string, then = ''): string => `
    export default {
      async fetch() {
        const fetched = fetch(${JSON.stringify(url)}).catch((error) => console.log('ended: ' + error.message))
        ${then}
        return await fetched
      }
    }`

  await t.test('when the time is up', async (t) => {
    const { url, left } = await silentUpstream(t)
    await server.deploy('late', { 'index.js': waiting(url), 'carpool.config.json': '{"timeoutMs": 1500}' })
    t.equal((await server.get('/late/')).status, 504)
    await left
    // The fetch has no more time than the invocation has left: which of both limits is noticed first, nobody can tell.
    t.match(await server.untilLogged('late', /ended:/), {
      msg: /^ended: (?:The invocation has ended\.|\S+ did not answer within the \d+ ms that the fetch had\.)$/,
    })
  })

  await t.test('when the client leaves', async (t) => {
    const { url, arrived, left } = await silentUpstream(t)
    await server.deploy('left', waiting(url))
    const client = new AbortController()
    const answer = server.get('/left/', { signal: client.signal })
    await arrived
    client.abort()
    await t.rejects(answer)
    await left
  })

  await t.test('when the isolate passes its memory limit', async (t) => {
    const { url, left } = await silentUpstream(t)
    const hoard = `await fetch('${url}arrived'); const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5))`
    await server.deploy('greedy', { 'index.js': waiting(url, hoard), 'carpool.config.json': '{"memoryMb": 32}' })
    t.equal((await server.get('/greedy/')).status, 502)
    await left
  })
})

t.test('a request body above the limit is refused with its size and the limit', async (t) => {
  const url = await upstream(t, (_request, response) => t.fail('was sent') && response.end())
  const server = open
  await server.deploy(
    'sending',
    `export default {
      async fetch() {
        const refusal = (body) => fetch(${JSON.stringify(url)}, { method: 'POST', body }).catch((error) => error.message)
        return Response.json([await refusal('ä'.repeat(501)), await refusal(new Uint8Array(1001))])
      }
    }`,
  )
  const refusals = [1002, 1001].map((bytes) => `The request body has ${bytes} bytes; the limit is 1000.`)
  t.strictSame(await (await server.get('/sending/')).json(), refusals)
})
