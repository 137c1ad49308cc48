import { once } from 'node:events'
import { get, request as requestHttp, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import type { AuditPage, CreatedToken, Problem, TokenInfo, TokenScope } from '@carpool/core'
import t from 'tap'
import { problemOf, startControlPlane, TOKEN } from './support/control-plane.ts'

const DEPLOY = { code: 'code', sourceMap: '{}' }
const INVOKE = { method: 'GET', path: '/', headers: [], bodyBase64: '' }

/** Sends a request with headers that `fetch` does not let one set. */
async function raw(url: string, headers: Record<string, string>): Promise<{ status: number; problem: Problem }> {
  return new Promise((resolve, reject) => {
    requestHttp(url, { headers, agent: false })
      .on('response', (response) => {
        json(response).then((problem) => resolve({ status: response.statusCode ?? 0, problem: problem as Problem }), reject)
      })
      .on('error', reject)
      .end()
  })
}

t.test('an operator makes tokens, which are shown once, and revokes them', async (t) => {
  const { post, send, url } = await startControlPlane(t)
  const response = await post('/v1/tokens', { owner: 'acme', scopes: ['read'], days: 1 })
  t.equal(response.status, 201)
  const { token, ...info } = (await response.json()) as CreatedToken
  t.match(info, { id: /^[0-9a-f]{16}$/, owner: 'acme', scopes: ['read'], expiresAt: String })
  const { tokens } = (await (await send('/v1/tokens')).json()) as { tokens: TokenInfo[] }
  t.strictSame(tokens, [info])
  const read = (): Promise<Response> => fetch(`${url}/v1/functions`, { headers: { authorization: `bearer ${token}` } })
  t.equal((await read()).status, 200)
  t.equal((await send(`/v1/tokens/${info.id}`, { method: 'DELETE' })).status, 204)
  t.match(await problemOf(await read()), { status: 401, code: 'unauthorized' })
  t.match(await problemOf(await send(`/v1/tokens/${info.id}`, { method: 'DELETE' })), { status: 404, code: 'token-not-found' })
  t.match(await problemOf(await send('/v1/tokens/x', { method: 'DELETE' })), { status: 404, code: 'token-not-found' })
})

t.test('what makes no token is refused', async (t) => {
  const { post } = await startControlPlane(t)
  const bodies = [
    {},
    { owner: 'acme' },
    { owner: 'acme', scopes: [] },
    { owner: 'acme', scopes: ['root'] },
    { owner: 'acme', scopes: 'read' },
    { owner: 'acme', scopes: ['read'], days: 0 },
    { owner: 'acme', scopes: ['read'], days: 1.5 },
    { owner: 'acme', scopes: ['read'], days: 1e9 },
    { owner: 'acme', scopes: ['read'], id: 'x' },
    { owner: 1, scopes: ['read'] },
  ]
  for (const body of bodies) t.match(await problemOf(await post('/v1/tokens', body)), { status: 400, code: 'bad-request' })
  for (const owner of ['', '..', 'A', '-a', 'a b', 'ä', '__proto__'])
    t.match(await problemOf(await post('/v1/tokens', { owner, scopes: ['read'] })), { status: 400, code: 'invalid-name' }, owner)
})

t.test('each scope allows what it is for, and nothing else; what is missing is named', async (t) => {
  const { as, post } = await startControlPlane(t)
  await post('/v1/functions/f/revisions?owner=acme', DEPLOY)
  const { id: other } = as('acme', 'read')
  type Asked = readonly [method: string, path: string, body?: object]
  const operations = {
    deploy: [
      ['POST', '/v1/functions/g/revisions', DEPLOY],
      ['PUT', '/v1/functions/g/secrets/A', { value: 'v' }],
      ['DELETE', '/v1/functions/g/secrets/A'],
      ['DELETE', '/v1/functions/g'],
    ],
    invoke: [['POST', '/v1/functions/f/invocations', INVOKE]],
    read: [
      ['GET', '/v1/functions'],
      ['GET', '/v1/functions/f'],
      ['GET', '/v1/functions/f/secrets'],
      ['GET', '/v1/logs'],
      ['GET', '/v1/logs?function=f'],
      ['GET', '/v1/usage'],
      ['GET', '/v1/invocations'],
      ['GET', '/v1/status'],
      ['GET', '/v1/server'],
    ],
    admin: [
      ['GET', '/v1/tokens'],
      ['POST', '/v1/tokens', { owner: 'acme', scopes: ['admin'] }],
      ['GET', '/v1/audit'],
      ['POST', '/v1/functions/f/disable', {}],
      ['POST', '/v1/functions/f/enable'],
      ['DELETE', `/v1/tokens/${other}`],
    ],
  } satisfies Record<TokenScope, readonly Asked[]>
  const scopes = Object.keys(operations) as TokenScope[]
  for (const held of scopes) {
    const { send } = as('acme', held)
    for (const scope of scopes) {
      for (const [method, path, body] of operations[scope] as readonly Asked[]) {
        const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
        const response = await send(path, { method, ...init })
        const name = `${held}: ${method} ${path}`
        if (held === scope || held === 'admin') {
          t.ok(response.ok || scope === 'invoke', `${name} ${response.status}`)
          t.not(response.status, 403, name)
          continue
        }
        t.match(await problemOf(response), {
          status: 403,
          code: 'forbidden',
          detail: `This needs a token with the scope "${scope}"; this one has ${held}.`,
        })
      }
    }
  }
})

t.test('without a valid token nothing is told, whatever is asked for', async (t) => {
  const { url, as, post } = await startControlPlane(t)
  await post('/v1/functions/f/revisions', DEPLOY)
  const { token } = as('acme', 'admin')
  const wrong = [
    '',
    'Bearer',
    'Bearer ',
    `Basic ${TOKEN}`,
    'Bearer x',
    `Bearer ${TOKEN}x`,
    `Bearer ${token} x`,
    `Bearer ${token.slice(0, -1)}`,
  ]
  for (const authorization of wrong) {
    const problem = await problemOf(await fetch(`${url}/v1/functions/f`, { headers: { authorization } }))
    t.match(problem, { status: 401, code: 'unauthorized' }, authorization)
    t.notMatch(problem.detail, /\bf\b.*function|default/)
  }
  const large = await fetch(`${url}/v1/functions/f/revisions`, {
    method: 'POST',
    body: '{',
    headers: { 'content-type': 'application/json' },
  })
  t.equal(large.status, 401, 'the body is not looked at')
})

t.test('a token in the URL is refused, also beside a valid one', async (t) => {
  const { send, as } = await startControlPlane(t)
  const { token } = as('acme', 'read')
  for (const query of ['token=x', 'access_token=x', 'a=b&api_key=x', `q=${token}`, 'TOKEN=x', 'authorization=Bearer+x']) {
    const problem = await problemOf(await send(`/v1/functions?${query}`))
    t.match(problem, { status: 401, detail: /never in the URL/ }, query)
    t.notOk(JSON.stringify(problem).includes(token))
  }
})

t.test('a browser that a page makes send requests is refused: by Origin, and by Host', async (t) => {
  const { url } = await startControlPlane(t)
  const authorization = `Bearer ${TOKEN}`
  const { port } = new URL(url)
  const refused = [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '0x7f.1',
    '[::1',
    '::1',
    '127.0.0.1:99999999',
    '[evil]',
    ':80',
  ]
  for (const host of refused) {
    t.match(
      await raw(`${url}/v1/server`, { authorization, host }),
      { status: 401, problem: { detail: /by IP address or as localhost/ } },
      host,
    )
    t.match(await raw(`${url}/metrics`, { host }), { status: 401 }, `${host} for metrics`)
  }
  for (const host of [
    `127.0.0.1:${port}`,
    '127.0.0.1',
    `localhost:${port}`,
    'LOCALHOST',
    'localhost.',
    `[::1]:${port}`,
    '[::1]',
    '10.1.2.3',
  ])
    t.match(await raw(`${url}/v1/server`, { authorization, host }), { status: 200 }, host)
  for (const origin of ['null', 'http://evil.example', url]) {
    t.match(
      await raw(`${url}/v1/server`, { authorization, origin }),
      { status: 401, problem: { detail: /from web pages/ } },
      origin,
    )
    t.match(await raw(`${url}/metrics`, { origin }), { status: 401 })
  }
})

t.test('metrics are open, or for admins alone', async (t) => {
  const open = await startControlPlane(t)
  t.equal((await fetch(`${open.url}/metrics`)).status, 200)
  const closed = await startControlPlane(t, undefined, { metricsAccess: 'token' })
  t.equal((await fetch(`${closed.url}/metrics`)).status, 401)
  t.match(await problemOf(await closed.as('acme', 'read').send('/metrics')), { status: 403, code: 'forbidden' })
  const response = await closed.as('acme', 'admin').send('/metrics')
  t.match(response.headers.get('content-type'), /^text\/plain/)
  t.match(await response.text(), /^# HELP/)
})

t.test(
  'too many requests without a valid token are told to wait, and are not listed one by one; a valid one is let in',
  async (t) => {
    const { url, send } = await startControlPlane(t)
    const attempt = (): Promise<Response> => fetch(`${url}/v1/functions`, { headers: { authorization: 'Bearer x' } })
    const attemptFrom = async (localAddress: string): Promise<string | undefined> => {
      const [response] = (await once(get(`${url}/v1/functions`, { localAddress }), 'response')) as [IncomingMessage]
      response.resume()
      return response.headers['retry-after']
    }
    for (let i = 0; i < 20; i++) t.notOk((await attempt()).headers.has('retry-after'))
    for (let i = 0; i < 5; i++) {
      const response = await attempt()
      t.match(response.headers.get('retry-after'), /^[1-3]$/)
      t.match(await problemOf(response), {
        status: 401,
        detail: /^Too many requests without a valid token came from this address; wait [1-3] s\.$/,
      })
    }
    t.match(await attemptFrom('127.1.2.3'), /^[1-3]$/, 'from whichever address of this machine')
    t.equal((await send('/v1/functions')).status, 200)
    const { entries } = (await (await send('/v1/audit?limit=100')).json()) as AuditPage
    t.ok(entries.length >= 20 && entries.length < 25, String(entries.length))
    t.match(entries[19], { action: 'listFunctions', result: 'unauthorized', remoteAddress: '127.0.0.1', note: /left out/ })
    t.notHas(entries[19], { tokenId: String })
  },
)

t.test('a token that is revoked while the past of a log is read is refused', async (t) => {
  const { as, access, logs } = await startControlPlane(t)
  const { send, id } = as('acme', 'read')
  logs.tail = async () => {
    access.tokens.revoke(id)
    return []
  }
  t.match(await problemOf(await send('/v1/logs?follow=true')), { status: 401, code: 'unauthorized' })
  t.equal(logs.followers, 0)
})

t.test('a log that is followed ends when the token is revoked', async (t) => {
  const { as, access, logs, post } = await startControlPlane(t)
  await post('/v1/functions/f/revisions?owner=acme', DEPLOY)
  logs.append({ time: '2026-01-01T00:00:00.000Z', level: 'info', stream: 'console', function: 'f', revision: '0', msg: 'm' })
  const { send, id } = as('acme', 'read')
  const response = await send('/v1/logs?follow=true')
  const reader = response.body!.getReader()
  t.match(await reader.read(), { done: false })
  t.equal(logs.followers, 1)
  access.tokens.revoke(id)
  await t.rejects(reader.read())
  while (logs.followers > 0) await new Promise(setImmediate)
})
