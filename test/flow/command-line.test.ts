/** The command as scripts use it: one JSON document on stdout, everything else on stderr. */
import { createInterface } from 'node:readline'
import t from 'tap'
import type { LogLine } from '@carpool/core'
import { startCarpool, untilEnd } from '../support/command.ts'
import { startServer } from '../support/server.ts'

const ECHO = `
  export default {
    async fetch(request) {
      console.log('called', request.method)
      if (request.url.endsWith('/fail')) throw new Error('no')
      return Response.json({ method: request.method, path: new URL(request.url).pathname, body: await request.text() })
    }
  }`

const server = await startServer(t)

t.test('a function through all the commands', async (t) => {
  const carpool = (...verb: string[]) =>
    untilEnd(startCarpool([...verb, '--url', server.adminUrl], { CARPOOL_STATE_DIR: server.stateDir }))
  const deployed = await server.deploy('echo', ECHO)
  t.match(deployed, { name: 'echo', form: 'fetch', revision: /^[0-9a-f]{16}$/, url: `${server.url}/echo/` })

  t.match(await server.json('list'), [{ name: 'echo', revision: deployed.revision }])

  t.match(await server.json('invoke', 'echo', '-d', '{"a":1}', '--path', '/x'), { outcome: 'ok', status: 200 })
  const plain = await carpool('invoke', 'echo', '-d', 'text')
  t.equal(plain.stdout, '{"method":"POST","path":"/","body":"text"}')
  t.equal(plain.stderr, `Calling ${server.url}/echo/\n`)

  const failed = await carpool('invoke', 'echo', '--path', '/fail', '--json')
  t.equal(failed.code, 1)
  t.match(JSON.parse(failed.stdout), { outcome: 'exception', status: 500 })

  await server.untilLogged('echo', /exception: Error: no/)
  const follower = startCarpool(['logs', 'echo', '-f', '-n', '1000', '--json', '--url', server.adminUrl], {
    CARPOOL_STATE_DIR: server.stateDir,
  })
  t.teardown(() => follower.kill('SIGKILL'))
  const followed = await createInterface({ input: follower.stdout! })[Symbol.asyncIterator]().next()
  t.match(JSON.parse(followed.value!), { function: 'echo', stream: 'console', level: 'info', msg: 'called POST' })
  const lines = await server.json<LogLine[]>('logs', 'echo')
  t.match(lines[0], { function: 'echo', stream: 'console', level: 'info', msg: 'called POST', revision: deployed.revision })
  t.equal(new Set(lines.map(({ invocationId }) => invocationId)).size, 3)

  t.equal((await carpool('delete', 'echo', '--json')).code, 0)
  const gone = await carpool('invoke', 'echo', '--json')
  t.equal(gone.code, 1)
  t.match(JSON.parse(gone.stdout), { error: { code: 'not-found', status: 404 } })
})

t.test('a server that cannot have its port says which, and leaves nothing behind', async (t) => {
  const { port } = new URL(server.url)
  await t.rejects(startServer(t, ['--port', port]), { message: new RegExp(`127\\.0\\.0\\.1:${port} \\(--port\\)`) })
})

t.test('a second server on the same data is refused', async (t) => {
  await t.rejects(startServer(t, [], server.dataDir), { message: /ended with code 1/ })
})

t.test('the control plane takes no stranger', async (t) => {
  const url = `${server.adminUrl}/v1/functions`
  for (const headers of [{}, { authorization: 'Bearer wrong' }]) t.equal((await fetch(url, { headers })).status, 401)
  t.equal((await fetch(`${server.adminUrl}/healthz`)).status, 200)
  t.equal((await fetch(`${server.adminUrl}/readyz`)).status, 200)
})
