/** Where each function may fetch from, and how much of what there is. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startServer, type TestServer } from '../support/server.ts'

async function upstream(t: Test, handler: RequestListener, host = '127.0.0.1'): Promise<string> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://${host}:${(server.address() as AddressInfo).port}/`
}

/** Deploys a bundle as the command sends it. */
async function deployBundle(server: TestServer, name: string, request: object): Promise<Response> {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim()
  return fetch(`${server.adminUrl}/v1/functions/${name}/revisions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ sourceMap: '{"version":3,"sources":[],"names":[],"mappings":""}', ...request }),
  })
}

const FETCH_TO = `() => ({ default: { async fetch(request) {
  const to = new URL(request.url).searchParams.get('to')
  return new Response(await fetch(to).then((response) => response.text(), (error) => error.message))
} } })`

const OPENED = ['--allow-egress', '127.0.0.0/8', '--deny-egress', '127.0.0.3', '--max-egress-connections', '30']
const server = await startServer(t, OPENED)

t.test('a function fetches from no host that its own list does not have', async (t) => {
  const other = await upstream(t, (_request, response) => response.end('other'), '127.0.0.2')
  const denied = await upstream(t, (_request, response) => response.end(String(t.fail('was reached'))), '127.0.0.3')
  const own = await upstream(t, ({ url }, response) => {
    if (url === '/moved') response.writeHead(302, { location: other }).end()
    else response.end('own')
  })
  const ask = async (name: string, to: string) => (await server.get(`/${name}/?to=${encodeURIComponent(to)}`)).text()
  const refused = (url: string) =>
    `${new URL(url).host} is not among the hosts that this function may fetch from ("egress" in its config).`

  await t.test('which its config has', async (t) => {
    t.equal((await deployBundle(server, 'listed', { code: FETCH_TO, egress: ['127.0.0.1', 'api.example.com'] })).status, 201)
    t.equal(await ask('listed', own), 'own')
    t.equal(await ask('listed', other), refused(other))
    t.equal(await ask('listed', `${own}moved`), refused(other), 'nor by a redirect')
    t.equal(await ask('listed', own.replace('127.0.0.1', '2130706433')), 'own', 'in every spelling of the host')
  })

  await t.test('and from none if the list is empty', async (t) => {
    await deployBundle(server, 'closed', { code: FETCH_TO, egress: [] })
    t.equal(await ask('closed', own), refused(own))
  })

  await t.test('while one without a list fetches from all that the operator opened and did not close', async (t) => {
    await deployBundle(server, 'open', { code: FETCH_TO })
    t.equal(await ask('open', `${own}moved`), 'other')
    t.equal(await ask('open', denied), `The address of ${new URL(denied).host} is not open to functions.`)
  })

  await t.test('a list that is none is refused with the entry', async (t) => {
    const response = await deployBundle(server, 'wrong', { code: FETCH_TO, egress: ['fine.example', 'https://x.example/'] })
    t.equal(response.status, 400)
    t.match(await response.json(), {
      code: 'invalid-config',
      detail: /^egress holds "https:\/\/x\.example\/"; an entry is a host name/,
    })
  })

  await t.test('what the module scope fetches is held to it as well', async (t) => {
    const early = (to: string) => `() => {
      const early = fetch(${JSON.stringify(to)}).then((response) => response.text(), (error) => error.message)
      return { default: { fetch: async () => new Response(await early) } }
    }`
    await deployBundle(server, 'early', { code: early(own), egress: ['127.0.0.1'] })
    await deployBundle(server, 'late', { code: early(other), egress: ['127.0.0.1'] })
    t.equal(await (await server.get('/early/')).text(), 'own')
    t.equal(await (await server.get('/late/')).text(), refused(other))
  })
})

t.test('a flood of fetches that nobody answers leaves another function its own', async (t) => {
  const held = Promise.withResolvers<void>()
  let count = 0
  const url = await upstream(t, ({ url }, response) => {
    if (url !== '/held') return void response.end('answered')
    if (++count === 10) held.resolve()
  })
  await deployBundle(server, 'neighbour', { code: FETCH_TO })
  await deployBundle(server, 'flood', {
    code: `() => ({ default: { async fetch() {
      await Promise.allSettled(Array.from({ length: 200 }, () => fetch(${JSON.stringify(`${url}held`)})))
    } } })`,
    limits: { wallMs: 60_000 },
  })
  const client = new AbortController()
  const flood = server.get('/flood/', { signal: client.signal })
  await held.promise
  for (let call = 0; call < 20; call += 1) {
    t.equal(await (await server.get(`/neighbour/?to=${encodeURIComponent(url)}`)).text(), 'answered')
  }
  t.equal(count, 10, 'a third of all connections')
  client.abort()
  await t.rejects(flood)
})
