/** The data plane in an app of somebody else's. */
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { carpoolGateway } from '../src/index.ts'
import { answerBy, LIMITS, ok, type Answer } from './support/gateway.ts'

async function appWith(t: Test, answer: Answer, prefix = '/functions'): Promise<{ url: string; port: number; hooked: string[] }> {
  const app = Fastify()
  const hooked: string[] = []
  app.addHook('onRequest', async (request, reply) => {
    hooked.push(request.url)
    if (request.url.endsWith('/forbidden')) await reply.code(403).send('not here')
  })
  app.get('/own', () => 'own route')
  await app.register(carpoolGateway, {
    prefix,
    invoke: (call) => void answerBy(call, answer),
    limits: { ...LIMITS, maxBodyBytes: 10 },
    onFault: (error) => t.fail(error.message),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, hooked }
}

t.test('functions answer below the prefix, beside the routes and hooks of the app', async (t) => {
  const { url, hooked } = await appWith(t, ({ functionName, request }) =>
    ok(
      [
        functionName,
        new URL(request.url).pathname,
        new Map(request.headers).get('x-forwarded-prefix'),
        Buffer.from(request.body).toString(),
      ].join(' '),
    ),
  )
  t.equal(await (await fetch(`${url}/own`)).text(), 'own route')
  const response = await fetch(`${url}/functions/shop/cart/7?x=1`, { method: 'POST', body: 'four' })
  t.equal(await response.text(), 'shop /cart/7 /functions/shop four')
  t.match(response.headers.get('server-timing'), /exec;dur/)
  t.equal((await fetch(`${url}/functions/shop/forbidden`)).status, 403)
  t.equal((await fetch(`${url}/elsewhere`)).status, 404)
  t.strictSame(hooked, ['/own', '/functions/shop/cart/7?x=1', '/functions/shop/forbidden', '/elsewhere'])
})

t.test('its limits hold there, and what is refused is answered in its own form', async (t) => {
  const { url, port } = await appWith(t, () => ok('served'))
  const large = await fetch(`${url}/functions/shop/`, { method: 'POST', body: 'x'.repeat(11) })
  t.match({ status: large.status, body: await large.json() }, { status: 413, body: { code: 'body-too-large' } })
  const nameless = await fetch(`${url}/functions/`)
  t.match({ status: nameless.status, body: await nameless.json() }, { status: 404, body: { code: 'route-not-found' } })
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write('GET /functions/shop/ HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\nGET /functions/shop/ HTTP/1.1\r\nhost: a\r\n\r\n')
  t.match(await text(socket), /^HTTP\/1\.1 400 (?:(?!HTTP\/1\.1 )[^])*"code":"bad-request"(?:(?!HTTP\/1\.1 )[^])*$/)
})

t.test('a prefix that is written in another way leads to no other function than the app was asked for', async (t) => {
  const { port } = await appWith(t, ({ functionName }) => ok(`called ${functionName}`), '/my/own')
  const ask = async (path: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
    return text(socket)
  }
  t.match(await ask('/my/own/shop/other'), /called shop$/)
  t.match(await ask('http://a/my/own/shop/other'), /called shop$/)
  for (const path of ['/%6d%79/own/shop/other', '/my/%6fwn/shop/other', '/m%79/o%77n/a/shop/']) {
    t.match(await ask(path), /^HTTP\/1\.1 404 [^]*route-not-found/, path)
  }
})

t.test('many requests behind a refused one cost the connection one listener', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const { port } = await appWith(t, () => ok('called'))
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /functions/f/ HTTP/1.1\r\nhost: a b\r\n\r\n${'GET /functions/f/ HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(50)}`)
  t.match(await text(socket), /^HTTP\/1\.1 400 (?![^]*called)/)
  t.strictSame(warnings, [])
})

t.test('a client that leaves cancels its call', async (t) => {
  const { promise: canceled, resolve } = Promise.withResolvers<void>()
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>()
  const { url } = await appWith(t, async ({ cancellation }) => {
    cancellation.onCancel(resolve)
    enter()
    await canceled
    return ok('late')
  })
  const controller = new AbortController()
  const call = fetch(`${url}/functions/slow/`, { signal: controller.signal })
  await entered
  controller.abort()
  await t.rejects(call)
  await t.resolves(canceled)
})
