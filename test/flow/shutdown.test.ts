/** A server that is told to end answers what it has taken, and leaves nothing behind. */
import t from 'tap'
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
