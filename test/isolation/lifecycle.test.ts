/**
 * Group C7 of the list of attacks, first part: deploys, deletes and secrets while calls are under way, and clients that leave.
 */
import t from 'tap'
import { callAndLeave } from '../support/load.ts'
import type { Answer } from './harness/call.ts'
import { deployScript } from './harness/control.ts'
import { FORM } from './harness/form.ts'
import type { CaseContext } from './harness/isolation-case.ts'
import { untilRecorded } from './harness/records.ts'
import { runCases } from './harness/run-cases.ts'
import { casesOf } from './support-b/cases-of.ts'
import { askAsOperator } from './support-b/control-answer.ts'
import { pathTo } from './support-b/fetch-attempts.ts'
import { leftAnswer } from './support-b/left-answer.ts'
import { comes } from './support-b/patience.ts'
import { answersIn } from './support-b/raw-answers.ts'
import { connectRaw } from './support-b/raw-client.ts'
import { startRawUpstream, type RawUpstream } from './support-b/raw-upstream.ts'

const lifecycle = casesOf('lifecycle', { verdict: 'OK', again: 'any', isRepeatable: false })

/** Says its number from module scope, from the handler, and after waiting: a mix would show. */
function numbered(number: number): string {
  return `(function () { const loaded = ${number}; return { default: { async fetch() {
    const entered = ${number}; await new Promise((done) => setTimeout(done, 5)); return Response.json([loaded, entered, ${number}])
  } } } })`
}

const BROKEN: Readonly<Record<string, readonly [title: string, code: string]>> = {
  a: ['a syntax error', '(function () { return { default: { fetch( { } } }) '],
  b: ['a module scope that throws', '(function () { throw new Error("no") })'],
  c: ['a module scope that never ends', '(function () { for (;;); })'],
  d: ['no handler', '(function () { return { other: 1 } })'],
  e: ['a module scope that takes its memory', '(function () { const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5)) })'],
  f: ['a script that is no factory', '({ default: { fetch: () => new Response() } })'],
}

const DEPLOYS = [
  lifecycle('L01', 'three deploys under load', {
    script: numbered(1),
    attack: async ({ rig, name, call }) => {
      const state = { calling: true }
      const answers: Answer[] = []
      const callers = Array.from({ length: 4 }, async () => {
        while (state.calling) answers.push(await call())
      })
      for (const number of [2, 3, 4]) await deployScript(rig.server, name, { code: numbered(number) })
      state.calling = false
      await Promise.all(callers)
      return { answers: [...answers, await call()] }
    },
    check: ({ t }, { answers }) => {
      const seen = answers.map(({ text }) => JSON.parse(text) as number[])
      t.strictSame(
        seen.filter((numbers) => numbers.length !== 3 || new Set(numbers).size !== 1),
        [],
        'no two revisions are mixed',
      )
      t.equal(seen.at(-1)?.[0], 4, 'the last one takes over')
    },
  }),
  ...Object.entries(BROKEN).map(([letter, [title, code]]) =>
    lifecycle(`L02${letter}`, `a deploy of ${title} over a function that works`, {
      limits: { memoryMb: 32 },
      again: 'same',
      attack: async ({ t, rig, name, call }) => {
        const first = await call()
        const deployed = await deployScript(rig.server, name, { code, limits: { cpuMs: 200, wallMs: 1_000, memoryMb: 32 } })
        t.equal(deployed.status, 422, JSON.stringify(deployed))
        t.strictSame(rig.canary.leaksIn(JSON.stringify(deployed)), [])
        return { answers: [first, await call()] }
      },
    }),
  ),
  lifecycle('L03', 'deploys and a delete of one name at the same time', {
    script: numbered(1),
    attack: async ({ t, rig, name, call }) => {
      const path = `/v1/functions/${name}`
      await Promise.all([
        ...[2, 3, 4].map((number) => deployScript(rig.server, name, { code: numbered(number) })),
        askAsOperator(rig.server, path, { method: 'DELETE' }),
        deployScript(rig.server, name, { code: numbered(5) }),
      ])
      const shown = await askAsOperator(rig.server, path)
      t.equal((await call()).status, shown.status, 'what is listed is what answers')
      const last = await deployScript(rig.server, name, { code: numbered(6) })
      t.equal(last.status, 201)
      const answer = await call()
      t.equal(answer.text, '[6,6,6]', 'who was told last that it is live is live')
      return { answers: [answer] }
    },
  }),
]

/** A call that is held by its upstream until it is let go. */
async function hold({ t, call }: CaseContext): Promise<{ answer: Promise<Answer>; upstream: RawUpstream; letGo: () => void }> {
  const go = Promise.withResolvers<void>()
  const upstream = await startRawUpstream(t, (socket) => {
    void go.promise.then(() => socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'))
  })
  const answer = call(pathTo(upstream.url))
  await comes(t, 'the call is under way', upstream.untilRequests(1))
  return { answer, upstream, letGo: go.resolve }
}

const HELD = `
  const before = env.KEY;
  const to = new URL(request.url).searchParams.get('to');
  if (to !== null) await fetch(to);
  globalThis.calls = (globalThis.calls ?? 0) + 1;
  return Response.json({ before, after: env.KEY, fromProcess: process.env.KEY, calls: globalThis.calls })`

const CHANGES = [
  lifecycle('L04a', 'a delete while a call is under way', {
    handler: HELD,
    again: 'skipped',
    attack: async (context) => {
      const { t, rig, name, call } = context
      const { answer, letGo } = await hold(context)
      t.equal((await askAsOperator(rig.server, `/v1/functions/${name}`, { method: 'DELETE' })).status, 204)
      t.match(await call(), { status: 404, code: 'not-found' }, 'no other call gets in')
      letGo()
      const answers = [await answer]
      await deployScript(rig.server, name, { code: numbered(2) })
      return { answers }
    },
  }),
  lifecycle('L04b', 'a delete and a new function of the same name', {
    handler: HELD,
    env: { KEY: 'of the first' },
    attack: async ({ t, rig, name, call }) => {
      const first = await call()
      await askAsOperator(rig.server, `/v1/functions/${name}/secrets/SECRET`, { method: 'PUT', body: '{"value":"of the first"}' })
      t.equal((await askAsOperator(rig.server, `/v1/functions/${name}`, { method: 'DELETE' })).status, 204)
      await deployScript(rig.server, name, {
        code: `(function () { return { default: { fetch: (request, env) => Response.json({ env, calls: globalThis.calls ?? 0 }) } } })`,
      })
      const second = await call()
      t.strictSame(JSON.parse(second.text), { env: {}, calls: 0 }, 'it has nothing of the first')
      return { answers: [first, second] }
    },
  }),
  lifecycle('L05', 'a secret that is changed while a call is under way', {
    handler: HELD,
    attack: async (context) => {
      const { t, rig, name, call } = context
      const put = async (value: string): Promise<void> => {
        const path = `/v1/functions/${name}/secrets/KEY`
        const { status, text } = await askAsOperator(rig.server, path, { method: 'PUT', body: JSON.stringify({ value }) })
        t.ok(status < 300, text)
      }
      await put('old secret')
      const { answer, letGo } = await hold(context)
      await put('new secret')
      const next = await call()
      letGo()
      const held = await answer
      t.match(
        JSON.parse(held.text),
        { before: 'old secret', after: 'old secret', fromProcess: 'old secret' },
        'the one under way',
      )
      t.match(JSON.parse(next.text), { before: 'new secret', after: 'new secret', fromProcess: 'new secret' }, 'the next one')
      return { answers: [held, next] }
    },
  }),
]

const CLIENTS = [
  lifecycle('L20a', 'clients that leave before their request is whole', {
    billed: 'none',
    attack: async ({ t, rig, name }) => {
      const connections = await Promise.all(Array.from({ length: 20 }, () => connectRaw(t, rig.server.url)))
      for (const [index, { send }] of connections.entries()) {
        send(`POST /${name}/ HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n${index % 2 === 0 ? '\r\nhalf' : ''}`)
      }
      for (const { socket } of connections) socket.destroySoon()
      const { text } = await askAsOperator(rig.server, `/v1/functions/${name}`)
      t.match(JSON.parse(text), { invocations: 0 })
      return { answers: [await askAsOperator(rig.server, `/v1/functions/${name}`)] }
    },
    check: ({ t }, { records }) => t.strictSame(records, [], 'none is billed'),
  }),
  lifecycle('L20b', 'clients that leave while their calls are under way', {
    verdict: 'E',
    expect: { status: 0, code: '' },
    handler: 'await new Promise((done) => request.signal.addEventListener("abort", done)); console.log("stopped")',
    limits: { wallMs: 60_000 },
    attack: async ({ t, rig, name }) => {
      const left = await Promise.all(Array.from({ length: 10 }, () => callAndLeave(`${rig.server.url}/${name}/`, 100)))
      t.ok(left.every((how) => how === 'left'))
      const records = await untilRecorded(rig.server, name, 10)
      return { answers: records.map((record) => leftAnswer(record)) }
    },
    check: ({ t }, { records }) => {
      t.equal(records.length, 10)
      for (const record of records) t.match(record, { outcome: 'canceled', status: 499 })
    },
  }),
  lifecycle('L20c', 'a client that leaves when it has its answer', {
    attack: async ({ t, rig, name }) => {
      const connection = await connectRaw(t, rig.server.url)
      connection.send(`GET /${name}/ HTTP/1.1\r\nhost: a\r\n\r\n`)
      await comes(t, 'the answer', connection.until(/fine/))
      connection.socket.resetAndDestroy()
      return { answers: answersIn(connection.received) }
    },
    check: ({ t }, { records }) => t.match(records, [{ outcome: 'ok', status: 200 }]),
  }),
  lifecycle('L20d', 'a client that ends its half behind its request, as nc does', {
    attack: async ({ t, rig, name }) => {
      const connection = await connectRaw(t, rig.server.url)
      connection.socket.end(`GET /${name}/ HTTP/1.1\r\nhost: a\r\n\r\n`)
      await comes(t, 'the connection is closed', connection.untilClosed())
      const answers = answersIn(connection.received)
      const records = await untilRecorded(rig.server, name, 1)
      t.equal(answers.length, 1, `it gets its answer: ${records.map(({ outcome }) => outcome).join()}`)
      return { answers }
    },
  }),
]

/** The last one: what it leaves under way would hold up the deploys of others. */
const HOGS = [
  lifecycle('L21', 'two deploys that never end, while somebody else deploys', {
    attack: async ({ t, rig, name, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const hogs = [1, 2].map((index) =>
        deployScript(
          rig.server,
          `${name}-${index}`,
          { code: `(function () { fetch('${upstream.url}'); for (;;); })`, limits: { cpuMs: 900_000, wallMs: 900_000 } },
          'hog',
        ).catch(() => undefined),
      )
      await comes(t, 'one of them is under way', upstream.untilRequests(1))
      const deployed = deployScript(rig.server, name, { code: numbered(2) })
      await comes(t, 'somebody else can deploy', deployed)
      // That takes 30 s of CPU each, one after the other.
      if (FORM.isFull) t.equal((await Promise.all(hogs)).length, 2, 'and those that never end are refused')
      return { answers: [await call()] }
    },
  }),
]

t.test('lifecycle', (t) => runCases(t, [...DEPLOYS, ...CHANGES, ...CLIENTS, ...HOGS]))
