/** A server that is told to end answers what it has taken, and leaves nothing behind. */
import t from 'tap'
import { startLoad } from '../support/load.ts'
import { startServer, until } from '../support/server.ts'

const SLOW = `
  let running = 0
  export default {
    async fetch(request) {
      if (request.url.endsWith('/running')) return new Response(String(running))
      running++
      await new Promise((resolve) => setTimeout(resolve, 500))
      return new Response('done')
    }
  }`

t.test('SIGTERM with calls in flight fails none of them, and ends with exit code 0', async (t) => {
  const server = await startServer(t)
  await server.deploy('slow', SLOW)
  const calls = Array.from({ length: 50 }, async () => {
    const response = await server.get('/slow/')
    return `${response.status} ${await response.text()}`
  })
  await until(async () => (await (await server.get('/slow/running')).text()) === '50')
  const [host] = (await server.info()).hosts
  const ended = server.stop('SIGTERM')
  t.strictSame(new Set(await Promise.all(calls)), new Set(['200 done']))
  t.equal((await ended).code, 0)
  t.throws(() => process.kill(host?.pid ?? 0, 0), { code: 'ESRCH' }, 'the host process is gone')
  await t.rejects(server.get('/slow/'))
})

t.test('SIGTERM under load fails no call: connections that are open are served and closed, new ones are not taken', async (t) => {
  const server = await startServer(t)
  await server.deploy('quick', `export default { fetch: () => new Response('done') }`)
  const load = startLoad(t, `${server.url}/quick/`, 32)
  await until(async () => load.answers.length > 200)
  const ended = server.stop('SIGTERM')
  t.equal((await ended).code, 0)
  const answers = await load.stop()
  const unlike = new Set(
    answers.map(({ status, body }) => (status === 0 ? body.split(' ').slice(0, 2).join(' ') : `${status} ${body}`)),
  )
  unlike.delete('200 done')
  unlike.delete('connect ECONNREFUSED')
  t.strictSame(unlike, new Set())
})

t.test('while it ends it says that it is not ready, and a second signal ends it at once', async (t) => {
  const server = await startServer(t)
  await server.deploy('slow', `export default { fetch: () => new Promise((resolve) => setTimeout(resolve, 20_000)) }`)
  const call = server.get('/slow/').catch(() => 'cut')
  await until(async () => (await server.status()).inFlight === 1)
  const ended = server.stop('SIGTERM')
  const readiness = await until(async () => {
    const response = await fetch(`${server.adminUrl}/readyz`)
    return response.status === 503 && (await response.json())
  })
  t.match(readiness, { status: 'draining', reasons: [/shutting down/] })
  void server.stop('SIGTERM')
  t.equal((await ended).code, 143)
  t.equal(await call, 'cut')
})

t.test('calls that take longer than the grace are cut', async (t) => {
  const server = await startServer(t, ['--grace-ms', '200'])
  await server.deploy('slow', `export default { fetch: () => new Promise((resolve) => setTimeout(resolve, 20_000)) }`)
  const call = server.get('/slow/').catch(() => 'cut')
  await until(async () => (await server.status()).inFlight === 1)
  t.equal((await server.stop('SIGTERM')).code, 0)
  t.equal(await call, 'cut')
})

t.test('a host with a function that never ends does not outlive its server', async (t) => {
  const server = await startServer(t)
  await server.deploy('loop', `export default { fetch() { for (;;); } }`)
  const call = server.get('/loop/').catch(() => undefined)
  const [host] = (await server.info()).hosts
  await until(async () => (await server.info()).hosts.some(({ inFlight }) => inFlight === 1))
  await server.stop('SIGKILL')
  await call
  await until(async () => {
    try {
      process.kill(host?.pid ?? 0, 0)
      return false
    } catch {
      return true
    }
  })
  t.pass()
})
