/**
 * Group C6 of the list of attacks, second part: what is sent to the control plane, and what somebody else's token can do there.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CreatedToken, TokenScope } from '@carpool/core'
import type { Answer } from '../harness/call.ts'
import { NO_MAP } from '../harness/control.ts'
import type { CaseContext, IsolationCase } from '../harness/isolation-case.ts'
import { NEIGHBOUR } from '../harness/neighbour.ts'
import type { Rig } from '../harness/rig.ts'
import { askAs, askAsOperator } from '../support-b/control-answer.ts'
import { comes } from '../support-b/patience.ts'
import { answersIn } from '../support-b/raw-answers.ts'
import { connectRaw } from '../support-b/raw-client.ts'

const FINE = `(function () { return { default: { fetch: () => new Response('fine') } } })`
const DEPLOY = JSON.stringify({ code: FINE, sourceMap: NO_MAP })
const POST = { method: 'POST', body: DEPLOY }

/** What the control plane is asked, is refused with this status, and changes nothing. */
function refuses(
  id: string,
  title: string,
  expect: NonNullable<IsolationCase['expect']>,
  attack: (context: CaseContext) => Promise<readonly Answer[]>,
): IsolationCase {
  return {
    id,
    group: 'gateway',
    title,
    verdict: 'R',
    billed: 'none',
    again: 'any',
    // Who is refused too often is not listened to for a while.
    isRepeatable: false,
    expect,
    attack: async (context) => {
      const before = await listed(context.rig)
      const answers = await attack(context)
      context.t.strictSame(await listed(context.rig), before, 'nothing has changed')
      return { answers }
    },
    check: ({ t }, { records }) => t.strictSame(records, [], 'no function has run'),
  }
}

async function listed({ server }: Rig): Promise<unknown> {
  const { functions } = JSON.parse((await askAsOperator(server, '/v1/functions')).text) as {
    functions: { name: string; revision: string }[]
  }
  return functions.map(({ name, revision }) => `${name} ${revision}`)
}

async function tokenFor({ server }: Rig, owner: string, ...scopes: TokenScope[]): Promise<Record<string, string>> {
  const { text, status } = await askAsOperator(server, '/v1/tokens', { method: 'POST', body: JSON.stringify({ owner, scopes }) })
  if (status !== 201) throw new Error(`There is no token: ${text}`)
  return { authorization: `Bearer ${(JSON.parse(text) as CreatedToken).token}` }
}

const REQUESTS = [
  refuses(
    'G06a',
    'JSON that is too deep, poisoned, doubled or none',
    { status: 400, code: 'bad-request' },
    async ({ rig, name }) => {
      const bodies = [
        '['.repeat(200_000),
        `{"a":`.repeat(100_000),
        `{"__proto__":{"code":"x"},"sourceMap":"{}"}`,
        `{"constructor":{"prototype":{"polluted":1}},"code":"x","sourceMap":"{}"}`,
        `{"code":"x","sourceMap":"{}","extra":1}`,
        `{"code":1,"sourceMap":"{}"}`,
        `{"code":"x","sourceMap":"{}","env":{"A":1}}`,
        'null',
        '',
        '\u0000',
      ]
      return Promise.all(
        bodies.map((body) => askAsOperator(rig.server, `/v1/functions/${name}/revisions`, { method: 'POST', body })),
      )
    },
  ),
  refuses('G06b', 'bodies of other types', { status: 400, code: 'bad-request' }, async ({ rig, name }) =>
    Promise.all(
      ['text/plain', 'application/xml', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded'].map((type) =>
        askAsOperator(rig.server, `/v1/functions/${name}/revisions`, { ...POST, headers: { 'content-type': type } }),
      ),
    ),
  ),
  refuses('G06c', 'a body of 10 GB', { status: 413, code: /^(?:body|bundle)-too-large$/ }, async ({ t, rig, name }) => {
    const token = readFileSync(join(rig.server.dataDir, 'admin-token'), 'utf8').trim()
    const connection = await connectRaw(t, rig.server.adminUrl)
    const head = [
      'host: localhost',
      `authorization: Bearer ${token}`,
      'content-type: application/json',
      'content-length: 10000000000',
    ]
    connection.send(`POST /v1/functions/${name}/revisions HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`)
    await comes(t, 'it is refused before it comes', connection.until(/\r\n\r\n\{.*\}/))
    return answersIn(connection.received)
  }),
  refuses('G06d', 'names of functions that are none', { status: 400, code: /^(?:invalid-name|bad-request)$/ }, async ({ rig }) =>
    Promise.all(
      [
        ...'__proto__ - a_b NEIGHBOUR ｎeighbour neіghbour 🚗 neighbour. ../neighbour ..\\neighbour %2e%2e neighbour;x'.split(
          ' ',
        ),
        'a b',
        'con\n',
        'neighbour\0',
        'a'.repeat(64),
        'a'.repeat(10_000),
      ].map((name) => askAsOperator(rig.server, `/v1/functions/${encodeURIComponent(name)}/revisions`, POST)),
    ),
  ),
  refuses(
    'G07a',
    'no token, a wrong one, and one in the wrong place',
    { status: 401, code: 'unauthorized' },
    async ({ rig, name }) => {
      const token = readFileSync(join(rig.server.dataDir, 'admin-token'), 'utf8').trim()
      const path = `/v1/functions/${name}`
      return Promise.all([
        askAs(rig.server, {}, path),
        askAs(rig.server, { authorization: 'Bearer ' }, path),
        askAs(rig.server, { authorization: `Bearer ${token.slice(0, -1)}` }, path),
        askAs(rig.server, { authorization: `Bearer ${token}x` }, path),
        askAs(rig.server, { authorization: `Basic ${Buffer.from(`:${token}`).toString('base64')}` }, path),
        askAs(rig.server, { cookie: `token=${token}` }, path),
        askAs(rig.server, {}, `${path}?token=${token}`),
        askAs(rig.server, {}, `${path}?access_token=${token}`),
      ])
    },
  ),
  refuses(
    'G07b',
    'a page in a browser, and a name that was rebound',
    { status: 401, code: 'unauthorized' },
    async ({ t, rig, name }) => {
      const token = readFileSync(join(rig.server.dataDir, 'admin-token'), 'utf8').trim()
      const send = async (headers: string): Promise<Answer[]> => {
        const connection = await connectRaw(t, rig.server.adminUrl)
        connection.send(
          `GET /v1/functions/${name} HTTP/1.1\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n${headers}\r\n\r\n`,
        )
        return answersIn(await connection.untilClosed())
      }
      const all = [
        'host: evil.example',
        'host: localhost.evil.example',
        'host: localhost\r\norigin: http://evil.example',
        'host: 127.0.0.1.nip.io',
      ]
      return (await Promise.all(all.map(send))).flat()
    },
  ),
  refuses(
    'G07c',
    'routes of the control plane on the data plane',
    { status: 404, code: /^(?:not-found|route-not-found)$/ },
    async ({ rig }) =>
      Promise.all(
        ['/v1/functions', '/v1/status', '/metrics', '/readyz', '/healthz', '/v1/tokens', '//v1/functions'].map(async (path) => {
          const response = await fetch(rig.server.url + path)
          const text = await response.text()
          const code = response.headers.get('x-carpool-error') ?? ''
          return { path, status: response.status, code, text, headers: response.headers, id: '', tookMs: 0 }
        }),
      ),
  ),
]

const OWNERS = [
  refuses('G07d', "another owner's functions, by every route", { status: 404, code: 'not-found' }, async ({ t, rig }) => {
    const mallory = await tokenFor(rig, 'mallory', 'read', 'deploy', 'invoke')
    const ask = (path: string, init?: RequestInit): Promise<Answer> => askAs(rig.server, mallory, path, init)
    const known = `/v1/functions/${NEIGHBOUR}`
    const unknown = '/v1/functions/nobody-has-it'
    const invoke = JSON.stringify({ method: 'GET', path: '/', headers: [], bodyBase64: '' })
    const routes: [string, RequestInit?][] = [
      [''],
      ['', { method: 'DELETE' }],
      ['/invocations', { method: 'POST', body: invoke }],
      ['/secrets'],
      ['/secrets/KEY', { method: 'DELETE' }],
    ]
    const answers = []
    for (const [route, init] of routes) {
      const [one, other] = [await ask(known + route, init), await ask(unknown + route, init)]
      t.equal(one.text.replaceAll(NEIGHBOUR, 'nobody-has-it'), other.text, `${route} says the same of what is not there`)
      answers.push(one, other)
    }
    const lists = await Promise.all(['/v1/functions', '/v1/usage', '/v1/invocations'].map((path) => ask(path)))
    for (const { path, text } of lists) t.notMatch(text, NEIGHBOUR, `${path} has nothing of others`)
    return answers
  }),
  refuses('G07e', 'a name that another owner has', { status: 409, code: 'name-taken' }, async ({ rig }) => {
    const mallory = await tokenFor(rig, 'mallory', 'deploy')
    return [await askAs(rig.server, mallory, `/v1/functions/${NEIGHBOUR}/revisions`, POST)]
  }),
  refuses('G07f', 'what the scopes of a token do not allow', { status: 403, code: 'forbidden' }, async ({ rig, name }) => {
    const reader = await tokenFor(rig, 'default', 'read')
    const ask = (path: string, init?: RequestInit): Promise<Answer> => askAs(rig.server, reader, path, init)
    return Promise.all([
      ask(`/v1/functions/${name}`, { method: 'DELETE' }),
      ask(`/v1/functions/${name}/revisions`, POST),
      ask(`/v1/functions/${name}/secrets/KEY`, { method: 'PUT', body: '{"value":"x"}' }),
      ask('/v1/tokens'),
      ask('/v1/tokens', { method: 'POST', body: '{"owner":"default","scopes":["admin"]}' }),
      ask('/v1/audit'),
      ask(`/v1/functions/${name}/enable`, { method: 'POST' }),
    ])
  }),
]

export const GATEWAY_CONTROL_CASES: readonly IsolationCase[] = [...REQUESTS, ...OWNERS]
