import { promisify } from 'node:util'
import type { FunctionInfo, InvocationRecord, LogLine, UsageRow } from '@carpool/core'
import t from 'tap'
import { problemOf, SANDBOX, startControlPlane } from './support/control-plane.ts'

const DEPLOY = { code: 'code', sourceMap: '{}' }
const INVOKE = { method: 'GET', path: '/', headers: [], bodyBase64: '' }

function line(functionName: string, msg: string): LogLine {
  return { time: '2026-01-01T00:00:00.000Z', level: 'info', stream: 'console', function: functionName, revision: '0', msg }
}

function record(given: Partial<InvocationRecord>): InvocationRecord {
  return {
    id: '019f0000-0000-7000-8000-000000000001',
    functionName: 'shop',
    revision: '0123456789abcdef',
    owner: 'acme',
    trigger: 'http',
    startedAtMs: Date.UTC(2026, 0, 1),
    start: 'warm',
    outcome: 'ok',
    status: 200,
    host: 1,
    queueUs: 0,
    wallUs: 1_000,
    cpuUs: 100,
    initUs: 0,
    initCpuUs: 0,
    memoryMb: 256,
    memoryPeakKb: 1,
    bytesIn: 0,
    bytesOut: 0,
    egressBytesOut: 0,
    egressBytesIn: 0,
    openUs: 0,
    sockets: 0,
    socketUs: 0,
    attempts: 1,
    ...given,
  }
}

t.test("to an owner another one's function is none, in every word", async (t) => {
  const { as } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read', 'invoke')
  const beta = as('beta', 'deploy', 'read', 'invoke')
  t.equal((await acme.post('/v1/functions/shop/revisions', DEPLOY)).status, 201)
  const asks: Array<[method: string, path: (name: string) => string, body?: object]> = [
    ['GET', (name) => `/v1/functions/${name}`],
    ['DELETE', (name) => `/v1/functions/${name}`],
    ['GET', (name) => `/v1/logs?function=${name}`],
    ['GET', (name) => `/v1/logs?function=${name}&follow=true`],
    ['GET', (name) => `/v1/functions/${name}/secrets`],
    ['DELETE', (name) => `/v1/functions/${name}/secrets/A`],
    ['POST', (name) => `/v1/functions/${name}/invocations`, INVOKE],
  ]
  for (const [method, pathOf, body] of asks) {
    const init = { method, ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }) }
    const [others, none] = await Promise.all(
      ['shop', 'none'].map(async (name) => {
        const response = await beta.send(pathOf(name), init)
        const { date, ...headers } = Object.fromEntries(response.headers)
        const text = (await response.text()).replaceAll(name, 'NAME')
        return { status: response.status, text, headers: { ...headers, 'content-length': '', 'given': typeof date } }
      }),
    )
    t.strictSame(others, none, `${method} ${pathOf('shop')}`)
    t.equal(others?.status, 404)
  }
  t.match(await acme.get('/v1/functions/shop'), { name: 'shop', owner: 'acme', state: 'active' })
})

t.test("a name is one owner's, until the function is deleted", async (t) => {
  const { as, post } = await startControlPlane(t)
  const acme = as('acme', 'deploy')
  const beta = as('beta', 'deploy')
  t.equal((await acme.post('/v1/functions/shop/revisions', DEPLOY)).status, 201)
  const taken = { status: 409, code: 'name-taken' }
  t.match(await problemOf(await beta.post('/v1/functions/shop/revisions', DEPLOY)), taken)
  t.match(
    await problemOf(await post('/v1/functions/shop/revisions', DEPLOY)),
    taken,
    'also for an admin who does not say for whom',
  )
  t.equal((await post('/v1/functions/shop/revisions?owner=acme', DEPLOY)).status, 201)
  t.equal((await acme.delete('/v1/functions/shop')).status, 204)
  t.equal((await beta.post('/v1/functions/shop/revisions', DEPLOY)).status, 201)
})

t.test('lists, logs, usage and records hold what is of the owner of the token, and for admins all', async (t) => {
  const { as, post, logs, ledger, registry } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  const beta = as('beta', 'deploy', 'read')
  const admin = as('default', 'admin')
  for (const name of ['a1', 'a2', 'deleted']) await acme.post(`/v1/functions/${name}/revisions`, DEPLOY)
  await beta.post('/v1/functions/b1/revisions', DEPLOY)
  await post('/v1/functions/d1/revisions', DEPLOY)
  for (const name of ['a1', 'a2', 'b1', 'd1', 'deleted']) {
    const owner = registry.ownerOf(name) ?? ''
    logs.append(line(name, `of ${name}`))
    await promisify(ledger.write.bind(ledger))(record({ functionName: name, owner, revision: name }), 0)
  }
  await acme.delete('/v1/functions/deleted')
  await beta.post('/v1/functions/deleted/revisions', DEPLOY)

  type Asked = Awaited<ReturnType<typeof as>>
  const namesFor = async ({ get, send }: Asked, query = '') => {
    const q = query === '' ? '' : `?${query}`
    const lines = (await (await send(`/v1/logs${q}`)).text()).split('\n').filter((text) => text !== '')
    const logged = lines.map((text) => JSON.parse(text) as LogLine)
    const named = (of: ReadonlyArray<{ readonly function: string }>) => [...new Set(of.map((one) => one.function))].toSorted()
    return {
      functions: ((await get(`/v1/functions${q}`)) as { functions: FunctionInfo[] }).functions.map(({ name }) => name),
      logged: named(logged.filter(({ stream }) => stream === 'console')),
      reported: named(logged.filter(({ stream }) => stream === 'carpool')),
      used: ((await get(`/v1/usage${q}`)) as { rows: UsageRow[] }).rows.map(({ key }) => key),
      called: ((await get(`/v1/invocations${q}`)) as { invocations: InvocationRecord[] }).invocations.map(
        (one) => one.functionName,
      ),
    }
  }
  const OF_ACME = {
    functions: ['a1', 'a2'],
    logged: ['a1', 'a2'],
    reported: ['a1', 'a2'],
    used: ['a1', 'a2', 'deleted'],
    called: ['deleted', 'a2', 'a1'],
  }
  t.strictSame(await namesFor(acme), OF_ACME)
  t.strictSame(await namesFor(acme, 'owner=acme'), OF_ACME)
  t.strictSame(await namesFor(admin, 'owner=acme'), OF_ACME)
  t.match(await namesFor(beta), { functions: ['b1', 'deleted'], reported: ['b1'], used: ['b1'], called: ['b1'] })
  t.match(await namesFor(admin), {
    functions: ['a1', 'a2', 'b1', 'd1', 'deleted'],
    used: ['a1', 'a2', 'b1', 'd1', 'deleted'],
    called: ['deleted', 'd1', 'b1', 'a2', 'a1'],
  })
  t.strictSame(
    ((await acme.get('/v1/usage?by=owner')) as { rows: UsageRow[] }).rows.map(({ key }) => key),
    ['acme'],
  )
  t.strictSame(((await beta.get('/v1/usage?function=a1')) as { rows: UsageRow[] }).rows, [])
  t.strictSame(await beta.get('/v1/invocations?function=deleted'), { invocations: [] }, 'what a name did before is not told')
  for (const path of ['/v1/functions', '/v1/logs', '/v1/usage', '/v1/invocations', '/v1/functions/a1/secrets']) {
    t.match(
      await beta.get(`${path}?owner=acme`),
      { status: 403, code: 'forbidden', detail: /may name another owner; this one is of beta/ },
      path,
    )
    t.match(await admin.get(`${path}?owner=A_B`), { status: 400, code: 'invalid-name' }, path)
  }
  t.match(await problemOf(await beta.post('/v1/functions/b2/revisions?owner=acme', DEPLOY)), { status: 403 })
  t.match(await problemOf(await beta.put('/v1/functions/b2/secrets/A?owner=acme', { value: 'v' })), { status: 403 })
})

t.test('who follows all logs is told of own functions alone, by who has them at the time', async (t) => {
  const { as, logs } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  const beta = as('beta', 'deploy', 'read')
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  await beta.post('/v1/functions/store/revisions', DEPLOY)
  const follow = async ({ send }: ReturnType<typeof as>) => {
    const response = await send('/v1/logs?follow=true')
    return response.body!.pipeThrough(new TextDecoderStream()).getReader()
  }
  logs.append(line('shop', 'one'))
  logs.append(line('store', 'two'))
  const [ofAcme, ofBeta] = await Promise.all([follow(acme), follow(beta)])
  t.match(await ofAcme.read(), { value: /^[^\n]*"one"[^\n]*\n$/ })
  t.match(await ofBeta.read(), { value: /^[^\n]*"two"[^\n]*\n$/ })
  await acme.delete('/v1/functions/shop')
  await beta.post('/v1/functions/shop/revisions', DEPLOY)
  logs.append(line('shop', 'three'))
  t.match(await ofBeta.read(), { value: /"three"/ })
  await acme.post('/v1/functions/other/revisions', DEPLOY)
  logs.append(line('other', 'four'))
  t.match(await ofAcme.read(), { value: /^[^\n]*"four"[^\n]*\n$/ }, 'and "three" was not told')
  await Promise.all([ofAcme.cancel(), ofBeta.cancel()])
})

t.test('of the server as a whole others are told what has no part of anybody', async (t) => {
  const { as, state } = await startControlPlane(t, undefined, { url: () => 'u', adminUrl: () => 'a' })
  state.status = { ...state.status, inFlight: 5, hosts: [{ id: 1 } as never] }
  const { version, uptimeMs } = state.status
  // Why layers are off may name files of the machine.
  const sandbox = { on: 12, total: 13, off: [{ layers: ['user'], remedy: 'Run the server as root.' }] }
  t.strictSame(await as('acme', 'read').get('/v1/status'), { version, state: 'ready', reasons: [], uptimeMs, sandbox })
  t.strictSame(await as('acme', 'read').get('/v1/server'), { version: '0', url: 'u', adminUrl: 'a', hosts: [], sandbox })
  t.match(await as('acme', 'admin').get('/v1/status'), { inFlight: 5, hosts: [{ id: 1 }], sandbox: SANDBOX })
  t.match(await as('acme', 'admin').get('/v1/server'), { hosts: [{ id: 1 }], sandbox: SANDBOX })
})

t.test('an operator disables a function with a reason and enables it; an owner sees both and can do neither', async (t) => {
  const { as, post, send, registry } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  await acme.post('/v1/functions/quarantined/revisions', DEPLOY)
  t.match(await acme.get('/v1/functions'), { functions: [{ state: 'quarantined' }, { state: 'active' }] })
  t.equal((await post('/v1/functions/shop/disable', { reason: 'it mines coins' })).status, 204)
  t.match(await acme.get('/v1/functions/shop'), { state: 'disabled', reason: 'it mines coins' })
  t.throws(() => registry.checkEnabled('shop'), {
    code: 'function-disabled',
    message: /because it mines coins\. An operator can enable it/,
  })
  const again = await acme.post('/v1/functions/shop/revisions', { ...DEPLOY, code: 'better' })
  t.match(await again.json(), { state: 'disabled' })
  t.equal((await acme.send('/v1/functions/shop/enable', { method: 'POST' })).status, 403)
  t.equal((await send('/v1/functions/shop/enable', { method: 'POST' })).status, 204)
  t.match(await acme.get('/v1/functions/shop'), { state: 'active' })
  t.notHas(await acme.get('/v1/functions/shop'), { reason: String })
  for (const action of ['enable', 'disable'])
    t.match(await problemOf(await post(`/v1/functions/none/${action}`, {})), { status: 404, code: 'not-found' })
  for (const reason of ['', 'a\nb', 'x'.repeat(201), '\u009b31m', 5])
    t.match(await problemOf(await post('/v1/functions/shop/disable', { reason })), { status: 400, code: 'bad-request' })
})

t.test('the calls of a function are counted for who owned it', async (t) => {
  const { as } = await startControlPlane(t)
  const acme = as('acme', 'deploy', 'read')
  await acme.post('/v1/functions/shop/revisions', DEPLOY)
  t.match(await acme.get('/v1/functions/shop'), { invocations: 0, failures: 0 })
})
