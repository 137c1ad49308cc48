/** Owners share a server and nothing else: functions, logs, usage, secrets. */
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { AuditPage, CreatedToken, FunctionInfo, LogLine, UsageRow } from '@carpool/core'
import t, { type Test } from 'tap'
import { startServer, temporaryFolder, until, type TestServer } from '../support/server.ts'

const OLD = 'old secret value'
const NEW = 'new secret value'

/** What an owner does with a token of its own. */
async function ownerOf(server: TestServer, owner: string) {
  const { token } = await server.json<CreatedToken>('token', 'create', '--owner', owner, '--scope', 'deploy,read,invoke')
  const send = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(server.adminUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const text = await (await send(method, path, body)).text()
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  return {
    ask,
    get: <T>(path: string): Promise<T> => ask('GET', path),
    functions: async () => (await ask<{ functions: FunctionInfo[] }>('GET', '/v1/functions')).functions,
    used: async () => {
      const { rows } = await ask<{ rows: UsageRow[] }>('GET', '/v1/usage')
      return rows.map(({ key, invocations }) => [key, invocations])
    },
    log: async (name = '') => {
      const text = await (await send('GET', `/v1/logs${name && `?function=${name}`}`)).text()
      const lines = text.split('\n').filter((line) => line !== '')
      return lines.map((line) => JSON.parse(line) as LogLine)
    },
    deploy: async (name: string, code: string, ...more: string[]): Promise<object> => {
      const { stdout } = await server.carpool('deploy', server.write(code), '--name', name, '--token', token, '--json', ...more)
      return JSON.parse(stdout) as object
    },
    setSecret: (name: string, key: string, value: string) =>
      ask<{ revision?: string }>('PUT', `/v1/functions/${name}/secrets/${key}`, { value }),
  }
}

/** Answers each request when it is told to. */
async function startUpstream(t: Test) {
  const held: ServerResponse[] = []
  const upstream = createServer((_, response) => held.push(response)).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  return { url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/`, held }
}

function textIn(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
}

/** Shared, by owners and functions with names of their own. The last test that it is in ends it. */
const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])

t.test('owners see their own functions, logs and usage, and everybody can call all functions', async (t) => {
  const [acme, beta] = await Promise.all([ownerOf(server, 'acme'), ownerOf(server, 'beta')])
  await acme.deploy('shop', `export default () => { console.log('of acme'); return new Response('acme') }`)
  await beta.deploy('store', `export default () => { throw new Error('of beta') }`)
  for (let i = 0; i < 3; i++) t.equal(await (await server.get('/shop/')).text(), 'acme')
  t.equal((await server.get('/store/')).status, 500)

  t.match(await beta.deploy('shop', 'export default () => {}'), { error: { code: 'name-taken' } })
  const none = { status: 404, code: 'not-found', detail: 'There is no function named "shop".' }
  t.match(await beta.get('/v1/functions/shop'), none)
  t.match(await beta.get('/v1/logs?function=shop'), none)
  t.match(await beta.get('/v1/functions/shop/secrets'), none)
  t.match(await beta.ask('DELETE', '/v1/functions/shop'), none)
  const call = { method: 'GET', path: '/', headers: [], bodyBase64: '' }
  t.match(await beta.ask('POST', '/v1/functions/shop/invocations', call), none)
  t.match(await acme.ask('POST', '/v1/functions/shop/invocations', call), { outcome: 'ok', status: 200 })
  t.match(await beta.setSecret('shop', 'A', 'v'), { status: 409, code: 'name-taken' })
  t.match(await acme.functions(), [{ name: 'shop', owner: 'acme', invocations: 4, failures: 0 }])
  const lines = await acme.log()
  t.equal(lines.length, 8)
  t.ok(lines.every((line) => line.function === 'shop'))
  t.strictSame(await acme.used(), [['shop', 4]])

  // The name comes to somebody else, and what it was and did before does not.
  await acme.ask('DELETE', '/v1/functions/shop')
  await beta.deploy('shop', `export default () => new Response('beta')`)
  t.equal(await (await server.get('/shop/')).text(), 'beta')
  t.match(await beta.functions(), [
    { name: 'shop', invocations: 1 },
    { name: 'store', failures: 1 },
  ])
  t.notMatch(JSON.stringify(await beta.log('shop')), 'acme')
  t.strictSame(await beta.used(), [
    ['shop', 1],
    ['store', 1],
  ])
  t.strictSame(await acme.used(), [['shop', 4]], "usage of a deleted function stays its owner's")
  const { entries } = await server.json<AuditPage>('audit')
  const refused = entries.filter(({ subject, result, owner }) => subject === 'shop' && result === 'not-found' && owner === 'beta')
  t.strictSame(
    refused.map(({ action }) => action),
    ['getFunction', 'readLogs', 'listSecrets', 'deleteFunction', 'invokeFunction'],
  )
})

t.test('a secret is taken out of whatever the console makes of it', async (t) => {
  const acme = await ownerOf(server, 'logging')
  const [plain, quoted, long] = ['-- begin "A" --\nof plain\n', `-- begin "B" --\nit's quoted\n`, 'cut off at its end']
  await acme.setSecret('logged', 'PLAIN', plain)
  await acme.setSecret('logged', 'QUOTED', quoted)
  await acme.setSecret('logged', 'LONG', long)
  await acme.deploy(
    'logged',
    `export default (request, env) => {
      for (const value of [env.PLAIN, env.QUOTED]) {
        console.log(value)
        console.log({ value }, [value])
        console.log({ body: JSON.stringify({ value }) })
        console.log(JSON.stringify({ body: JSON.stringify({ value }) }))
        console.log(new Error(value))
      }
      console.log(' '.repeat(16_384 - 8) + env.LONG)
      console.log({ text: ' '.repeat(10_000 - 8) + env.LONG })
      console.log('the last line')
      return new Response()
    }`,
  )
  await server.get('/logged/')
  await server.untilLogged('logged', /the last line/)
  const messages = (await acme.log('logged')).filter(({ stream }) => stream === 'console').map(({ msg }) => msg)
  t.equal(messages.length, 13)
  for (const msg of messages.slice(0, -1)) {
    t.match(msg, '[secret ')
    t.notMatch(msg, /begin|quoted|of plain|cut off/)
  }
})

t.test(
  'a secret is no env at the same time, does not stand in what a deploy fails with, and goes with its function',
  async (t) => {
    const acme = await ownerOf(server, 'refused')
    const code = `export default (request, env) => new Response(String(env.API_KEY))`
    await acme.deploy('both', code, '--env', 'API_KEY=plain')
    const conflict = { code: 'invalid-config', detail: /^API_KEY is a secret of both and in the env/ }
    t.match(await acme.setSecret('both', 'API_KEY', NEW), conflict)
    await acme.deploy('both', `if (process.env.B) throw new Error('not with ' + process.env.B); ${code}`)
    await acme.setSecret('both', 'API_KEY', NEW)
    t.match(await acme.deploy('both', code, '--env', 'API_KEY=x'), { error: conflict })
    t.match(await acme.deploy('both', `throw new Error('no ' + process.env.API_KEY); ${code}`), {
      error: { code: 'load-failed', detail: /no \[secret API_KEY\]/ },
    })
    t.match(await acme.setSecret('both', 'B', 'value of B'), { code: 'load-failed', detail: /not with \[secret B\]/ })
    t.equal(await (await server.get('/both/')).text(), NEW, 'what was live stays')
    const { secrets } = await acme.get<{ secrets: object[] }>('/v1/functions/both/secrets')
    t.equal(secrets.length, 1, 'a secret with which it does not load is not set')

    await acme.ask('DELETE', '/v1/functions/both')
    t.match(await acme.get('/v1/functions/both/secrets'), { code: 'not-found' })
    await acme.deploy('both', code)
    t.equal(await (await server.get('/both/')).text(), 'undefined')
  },
)

t.test('a secret that is changed comes with the next call, calls under way keep the old one, and no log has it', async (t) => {
  const upstream = await startUpstream(t)
  const acme = await ownerOf(server, 'changing')
  await acme.setSecret('changed', 'API_KEY', OLD)
  await acme.deploy(
    'changed',
    `export default async (request, env) => {
      const { pathname } = new URL(request.url)
      console.log(pathname, env.API_KEY, btoa('user:' + env.API_KEY), encodeURIComponent(env.API_KEY))
      if (pathname === '/hold') await fetch('${upstream.url}')
      if (pathname === '/throw') throw new Error('it does not take ' + env.API_KEY)
      return new Response([env.API_KEY, process.env.API_KEY].join('|'))
    }`,
  )
  const call = async (path: string): Promise<string> => (await server.get(`/changed${path}`)).text()
  const held = call('/hold')
  await until(async () => upstream.held[0])
  t.equal(await call('/'), `${OLD}|${OLD}`)
  const { revision } = await acme.setSecret('changed', 'API_KEY', NEW)
  t.match(await acme.functions(), [{ revision }])
  t.equal(await call('/'), `${NEW}|${NEW}`)
  upstream.held[0]?.end()
  t.equal(await held, `${OLD}|${OLD}`)
  t.notMatch(await call('/throw'), NEW)

  await server.untilLogged('changed', /it does not take/)
  const logged = JSON.stringify(await acme.log('changed'))
  t.match(logged, /it does not take \[secret API_KEY\]/)
  t.match(logged, /\/hold \[secret API_KEY\] [\w+/]{4,8}\[secret API_KEY\][\w+/=]* \[secret API_KEY\]/)
  await acme.ask('DELETE', '/v1/functions/changed/secrets/API_KEY')
  t.equal(await call('/'), '|')
  t.equal((await server.stop()).code, 0)
  const kept = textIn(server.dataDir)
  for (const value of [OLD, NEW]) {
    for (const encoding of ['utf8', 'hex', 'base64'] as const)
      t.notOk(kept.includes(Buffer.from(value).toString(encoding)), encoding)
  }
})

t.test(
  'secrets and disabled functions outlive a restart; another key or a lost database makes secrets unusable, by name',
  async (t) => {
    const dataDir = temporaryFolder(t)
    const secretKeyFile = join(temporaryFolder(t), 'key')
    const flags = ['--secret-key-file', secretKeyFile]
    const first = await startServer(t, flags, dataDir)
    const acme = await ownerOf(first, 'acme')
    const code = `export default (request, env) => new Response(env.API_KEY ?? 'none')`
    await Promise.all(['shop', 'evil'].map((name) => acme.deploy(name, code)))
    await acme.setSecret('shop', 'API_KEY', NEW)
    await first.json('disable', 'evil', '--reason', 'it is evil')
    t.equal((await first.stop()).code, 0)
    t.notOk(readdirSync(dataDir).includes('secret-key'))

    const second = await startServer(t, flags, dataDir)
    t.equal(await (await second.get('/shop/')).text(), NEW)
    const refused = await second.get('/evil/')
    t.equal(refused.status, 503)
    t.match(await refused.json(), {
      code: 'function-disabled',
      detail: /^evil is disabled since 20.* because it is evil\. An operator can enable it with "carpool enable evil"\.$/,
    })
    t.match(await second.json<FunctionInfo[]>('list'), [
      { name: 'evil', owner: 'acme', state: 'disabled', reason: 'it is evil' },
      { name: 'shop', owner: 'acme', state: 'active' },
    ])
    await second.json('enable', 'evil')
    t.equal((await second.get('/evil/')).status, 200)
    t.equal((await second.stop()).code, 0)

    writeFileSync(secretKeyFile, Buffer.alloc(32).toString('base64'))
    const third = await startServer(t, flags, dataDir)
    const unusable = await third.get('/shop/')
    t.equal(unusable.status, 500)
    const problem = await unusable.text()
    t.match(problem, /"code":"data-unusable".*The secrets of shop cannot be used/)
    t.notOk(problem.includes(secretKeyFile))
    t.equal(await (await third.get('/evil/')).text(), 'none')
    t.match((await third.stop()).stderr, /the secrets of functions cannot be read or set with this key/)

    rmSync(join(dataDir, 'access.sqlite'))
    const fourth = await startServer(t, flags, dataDir)
    const lost = await fourth.get('/shop/')
    t.equal(lost.status, 500)
    t.match(await lost.json(), { code: 'data-unusable', detail: /The secrets that shop was deployed with are lost/ })
    t.equal(await (await fourth.get('/evil/')).text(), 'none')
    t.match((await fourth.stop()).stderr, /"functions":\["shop"\].*the secrets of functions are lost/)
  },
)
