/** Sockets of functions by themselves: `node:net` beside Node.js, `cloudflare:sockets`, and whose what comes of them is. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeCertificates } from '../../bench/src/lib/databases/certificates.ts'
import { inNode } from '../compat/in-node.ts'
import { startServer } from '../support/server.ts'

async function listen(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

const startEcho = (t: Test): Promise<number> =>
  listen(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      socket.pipe(socket)
    }),
  )

const server = await startServer(t, ['--allow-egress', '127.0.0.1'])

t.test('node:net does in a function what it does in Node.js', async (t) => {
  const port = await startEcho(t)
  const folder = t.testdir()
  for (const [from, to] of [
    ['functions/net.mjs', 'net.mjs'],
    ['../compat/run-cases.mjs', 'run-cases.mjs'],
  ] as const) {
    cpSync(join(import.meta.dirname, from), join(folder, to))
  }
  const entry = join(folder, 'index.mjs')
  writeFileSync(
    entry,
    `import { casesOf } from './net.mjs'
    import { asJson, runCases } from './run-cases.mjs'
    export const run = async (place) => asJson(await runCases(casesOf(JSON.parse(place))))
    export default async (request) => new Response(await run(await request.text()))`,
  )
  const place = JSON.stringify({ port })
  const expected = JSON.parse(await inNode(entry, place)) as Record<string, unknown>
  await server.json('deploy', entry, '--name', 'net', '--cpu-ms', '10000')
  const response = await server.get('/net/', { method: 'POST', body: place })
  const text = await response.text()
  t.equal(response.status, 200, text)
  const found = JSON.parse(text) as Record<string, unknown>
  for (const [name, value] of Object.entries(expected)) t.same(found[name], value, name)
})

t.test('connect() of cloudflare:sockets', async (t) => {
  const port = await startEcho(t)
  await server.deploy('web', {
    'index.mjs': `import { connect } from 'cloudflare:sockets'
      const text = (bytes) => new TextDecoder().decode(bytes)
      const failed = (promise) => promise.then(() => 'no error', (error) => [error.name, error.code])
      export default async (request) => {
        const port = Number(await request.text())
        const socket = connect({ hostname: '127.0.0.1', port })
        const writer = socket.writable.getWriter()
        await writer.write(new TextEncoder().encode('hello'))
        const { remoteAddress, alpn } = await socket.opened
        const reader = socket.readable.getReader()
        const { value } = await reader.read()
        await writer.close()
        const last = await reader.read()
        await socket.closed
        const other = connect(\`127.0.0.1:\${port}\`, { allowHalfOpen: true })
        await other.close()
        const nobody = connect('127.0.0.1:1')
        const refused = []
        for (const use of [() => connect('127.0.0.1'), () => connect('x:99999'), () => connect('x:1', { secureTransport: 'yes' }),
          () => connect('x:1').startTls()]) {
          try { use(); refused.push('no error') } catch (error) { refused.push(error.name) }
        }
        return Response.json({
          heard: text(value), last, address: remoteAddress === '127.0.0.1:' + port, alpn,
          nobody: [await failed(nobody.opened), await failed(nobody.closed), await failed(nobody.readable.getReader().read())], refused,
        })
      }`,
  })
  const response = await server.get('/web/', { method: 'POST', body: `${port}` })
  const REFUSED = ['TypeError', 'ECONNREFUSED']
  t.same(await response.json(), {
    heard: 'hello',
    last: { done: true },
    address: true,
    alpn: null,
    nobody: [REFUSED, REFUSED, REFUSED],
    refused: ['TypeError', 'TypeError', 'TypeError', 'TypeError'],
  })
})

const hasOpenssl = spawnSync('openssl', ['version']).status === 0

t.test('connect() starts TLS on a socket that began without', { skip: !hasOpenssl && 'openssl is not installed' }, async (t) => {
  const { certFile, keyFile } = makeCertificates(t.testdir())
  const secureContext = createSecureContext({ cert: readFileSync(certFile), key: readFileSync(keyFile) })
  const port = await listen(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      let missingBytes = 2 ** 20
      socket.on('data', function hear(bytes) {
        missingBytes -= bytes.length
        if (missingBytes > 0) return
        socket.off('data', hear).pause()
        socket.write('ready')
        const encrypted = new TLSSocket(socket, { isServer: true, secureContext })
        encrypted.on('error', () => {})
        encrypted.pipe(encrypted)
      })
    }),
  )
  await server.deploy('start-tls', {
    'index.mjs': `import { connect } from 'cloudflare:sockets'
      export default async (request) => {
        const socket = connect({ hostname: '127.0.0.1', port: Number(await request.text()) }, { secureTransport: 'starttls' })
        const writer = socket.writable.getWriter()
        const written = writer.write(new Uint8Array(2 ** 20))
        await socket.opened
        for (let turn = 0; turn < 50; turn++) await null
        let early
        try { socket.startTls() } catch (error) { early = String(error) }
        await written
        const reader = socket.readable.getReader()
        const { value } = await reader.read()
        reader.releaseLock()
        const secure = socket.startTls()
        return Response.json([early, new TextDecoder().decode(value), await secure.opened.then(() => 'opened', (error) => error.code)])
      }`,
  })
  const response = await server.get('/start-tls/', { method: 'POST', body: `${port}` })
  // Nobody vouches for it: it is told by its certificate, so TLS was spoken.
  t.same(await response.json(), [
    'TypeError: TLS cannot start while 786432 bytes that were sent before wait.',
    'ready',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ])
})

t.test('TLS that is asked for too early waits for the connection, or is refused', { skip: !hasOpenssl }, async (t) => {
  const { certFile, keyFile } = makeCertificates(t.testdir())
  const secureContext = createSecureContext({ cert: readFileSync(certFile), key: readFileSync(keyFile) })
  const port = await listen(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      new TLSSocket(socket, { isServer: true, secureContext }).on('error', () => {})
    }),
  )
  await server.deploy('tls-early', {
    'index.mjs': `import { connect } from 'cloudflare:sockets'
      import net from 'node:net'
      import tls from 'node:tls'
      const codeOf = (promise) => promise.then(() => 'opened', (error) => error.code)
      export default async (request) => {
        const port = Number(await request.text())
        const open = (options) => connect({ hostname: '127.0.0.1', port }, { secureTransport: 'starttls', ...options })
        const early = open()
        const secure = early.startTls()
        const outcomes = [(await early.opened).remoteAddress === '127.0.0.1:' + port, await codeOf(secure.opened)]
        for (const allowHalfOpen of [false, true]) {
          const socket = open({ allowHalfOpen })
          await socket.opened
          const written = socket.writable.getWriter().write(new Uint8Array(1))
          try { socket.startTls() } catch (error) { outcomes.push(error.message) }
          await written
          await socket.close()
        }
        const nobody = connect('127.0.0.1:1', { secureTransport: 'starttls' })
        outcomes.push(await codeOf(nobody.startTls().opened), await codeOf(nobody.opened))
        const plain = net.connect(port, '127.0.0.1')
        await new Promise((resolve) => plain.once('connect', resolve))
        plain.write(new Uint8Array(2 ** 20))
        const over = tls.connect({ socket: plain })
        const error = await new Promise((resolve) => over.once('error', resolve))
        await new Promise((resolve) => over.once('close', resolve))
        return Response.json([...outcomes, error.message, plain.destroyed])
      }`,
  })
  const response = await server.get('/tls-early/', { method: 'POST', body: `${port}` })
  const WAITS = 'The socket cannot start TLS while a chunk waits for the connection.'
  t.same(await response.json(), [
    true,
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    WAITS,
    WAITS,
    'ECONNREFUSED',
    'ECONNREFUSED',
    'TLS cannot start while 786432 bytes that were sent before wait.',
    true,
  ])
})

t.test("what a call does after it has heard by a shared socket is that call's, whoever opened it or wrote last", async (t) => {
  const words = ['a', 'b', 'c', 'd', 'e']
  let heard = ''
  let onHeard = (): void => {}
  // It answers when it has heard all words, so that all calls go on in an entry of the one that wrote last.
  const port = await listen(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => {
        heard += data.toString()
        onHeard()
        if (heard === words.join('')) socket.write(heard)
      })
    }),
  )
  await server.deploy('shared', {
    'index.mjs': `import net from 'node:net'
      let socket
      const waiting = []
      const ask = (port, word) => new Promise((resolve) => {
        waiting.push(resolve)
        if (socket === undefined) {
          socket = net.connect(port, '127.0.0.1')
          socket.on('data', () => {
            for (const tell of waiting) tell()
          })
        }
        socket.write(word)
      })
      export default async (request) => {
        const word = new URL(request.url).searchParams.get('word')
        const port = Number(new URL(request.url).searchParams.get('port'))
        await ask(port, word)
        console.log('heard', word)
        await new Promise((resolve) => setTimeout(resolve, 1))
        console.log('later', word)
        return new Response(word)
      }`,
  })
  const calls: Array<Promise<Response>> = []
  for (const [index, word] of words.entries()) {
    const hasHeard = new Promise<void>((resolve) => {
      onHeard = () => {
        if (heard.length > index) resolve()
      }
    })
    calls.push(server.get(`/shared/?port=${port}&word=${word}`))
    await hasHeard
  }
  const answers = await Promise.all(calls)
  const ids = answers.map((answer) => answer.headers.get('x-carpool-invocation'))
  t.same(await Promise.all(answers.map((answer) => answer.text())), words)
  for (const [index, word] of words.entries()) {
    for (const message of ['heard', 'later']) {
      const line = await server.untilLogged('shared', new RegExp(`${message} ${word}`))
      t.equal((line as unknown as { invocationId?: string }).invocationId, ids[index], `${message} ${word}`)
    }
  }
})
