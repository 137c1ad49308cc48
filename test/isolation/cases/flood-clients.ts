/** Group C4 of the list of attacks, second half: rejections, requests, headers, and functions that call functions. */
import { askControl } from '../harness/control.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { connectRaw } from '../support-b/raw-client.ts'
import { bursts, floods } from './flood-kit.ts'

/** Chunks of a byte in the body of each of `CHUNK_CLIENTS` clients. */
const CHUNKS = 50_000
const CHUNK_CLIENTS = 16
/** How often each of them comes with a new connection, and with a body that one read takes. */
const CHUNK_ROUNDS = 12
const READ_CHUNKS = 10_000

/** How often a call may lead to the next, on the server of these cases. */
export const FLOOD_HOPS = 4

/** Clients that send bodies in chunks of a byte, and come again with new connections. */
function inChunks(id: string, title: string, chunks: number, rounds: number): IsolationCase {
  return bursts(id, title, '', {
    handler: `if (request.body === null) return new Response('fine')
      let bytes = 0; for await (const part of request.body) bytes += part.length; return new Response('got ' + bytes)`,
    attack: async ({ t, rig, name, call: own }) => {
      const head = `POST /${name}/ HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`
      const bytes = `${head}${'1\r\na\r\n'.repeat(chunks)}0\r\n\r\n`
      const come = async (): Promise<void> => {
        for (let round = 0; round < rounds; round++) {
          const { socket, send, until } = await connectRaw(t, rig.server.url)
          send(bytes)
          t.match(await until(/got \d+/), new RegExp(`got ${chunks}$`))
          socket.destroy()
        }
      }
      await Promise.all(Array.from({ length: CHUNK_CLIENTS }, come))
      return { answers: [await own()] }
    },
  })
}

const REJECTIONS: readonly IsolationCase[] = [
  bursts(
    'F05a',
    'a promise that is rejected and that nobody awaits, in each of fifty calls',
    `Promise.reject(new Error('left alone'))`,
    {
      isRepeatable: false,
      attack: async ({ call: own }) => ({ answers: await Promise.all(Array.from({ length: 50 }, () => own())) }),
    },
  ),
  bursts('F05b', 'ten thousand of them in one call', `for (let i = 0; i < 10_000; i++) Promise.reject(new Error('left alone'))`),
  bursts(
    'F05c',
    'ten thousand of them after the answer',
    `setTimeout(() => { for (let i = 0; i < 10_000; i++) Promise.reject(i) }, 1)`,
    { again: 'any' },
  ),
  {
    ...floods('F06', 'a call that throws later, beside another call of the function', ''),
    handler: `if (request.url.endsWith('/throw')) { await new Promise((done) => setTimeout(done, 5)); throw new Error('mine') }
      await new Promise((done) => setTimeout(done, 20)); return new Response('fine')`,
    verdict: 'E',
    billed: 'full',
    limits: { wallMs: 20_000 },
    expect: { code: /^(?:|exception)$/ },
    attack: async ({ call: own }) => ({
      answers: await Promise.all(Array.from({ length: 40 }, (_, index) => own(index % 2 === 0 ? '/throw' : '/fine'))),
    }),
    check: ({ t }, { answers }) => {
      for (const { path, status, code } of answers)
        t.equal(`${status} ${code}`, path.endsWith('/throw') ? '500 exception' : '200 ')
    },
  } satisfies IsolationCase,
]

const REQUESTS: readonly IsolationCase[] = [
  bursts('F08a', 'a request of five megabytes that nobody reads', '0', {
    request: { method: 'POST', body: 'x'.repeat(5_000_000) },
  }),
  {
    id: 'F08b',
    group: 'flood',
    title: 'a request of fifty megabytes, in chunks, for a function that wants it whole',
    verdict: 'K',
    billed: 'full',
    handler: 'return new Response(await request.text())',
    again: 'any',
    // The connection may be cut off before the answer is read.
    expect: { code: /^(?:exception|cut-off)$/ },
    attack: async ({ call: own }) => {
      const chunk = new Uint8Array(1_000_000)
      let sent = 0
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (sent++ < 50) controller.enqueue(chunk)
          else controller.close()
        },
      })
      return { answers: [await own('/', { method: 'POST', body, duplex: 'half' })] }
    },
    check: ({ t }, { records }) => {
      for (const { outcome } of records) t.match(outcome, /^(?:exception|canceled)$/)
    },
  },
  inChunks('F08c', 'bodies in chunks of a byte, of sixteen clients at once', CHUNKS, 1),
  inChunks('F08d', 'bodies in chunks of a byte, of sixteen clients, each on a connection of its own', READ_CHUNKS, CHUNK_ROUNDS),
  {
    id: 'F09a',
    group: 'flood',
    title: 'five hundred clients at once of a function that takes ten calls',
    verdict: 'R',
    billed: 'full',
    limits: { concurrency: 10 },
    handler: 'await new Promise((done) => setTimeout(done, 50)); return new Response("fine")',
    expect: { code: /^(?:|too-many-requests)$/ },
    isRepeatable: false,
    attack: async ({ call: own }) => ({ answers: await Promise.all(Array.from({ length: 500 }, () => own())) }),
    check: ({ t }, { answers, records }) => {
      const refused = answers.filter(({ status }) => status === 429)
      t.ok(refused.length > 0 && refused.length < 500, `${refused.length} of 500 were refused`)
      t.equal(records.length, 500, 'each has a record')
      for (const { headers } of refused) if (headers.get('retry-after') === null) t.fail('a refusal without retry-after')
    },
  },
  {
    id: 'F10',
    group: 'flood',
    title: 'a function that fetches itself twice',
    verdict: 'R',
    billed: 'full',
    limits: { cpuMs: 5_000, wallMs: 20_000 },
    handler: `const fetches = [1, 2].map((number) => fetch(env.SELF, { headers: { 'x-carpool-hops': '0' } }).then((response) => response.status === 200 ? response.text() : String(response.status)))
      return new Response((await Promise.all(fetches)).join())`,
    // The first call and as many after it as the server was told; a refusal for each that the last ones make.
    expect: { body: Array.from({ length: 2 ** (FLOOD_HOPS + 1) }, () => '508').join() },
    isRepeatable: false,
    check: ({ t }, { records }) => {
      const ran = records.filter(({ outcome }) => outcome === 'ok')
      t.equal(ran.length, 2 ** (FLOOD_HOPS + 1) - 1, 'no call ran that should not')
    },
  },
  {
    id: 'F11a',
    group: 'flood',
    title: 'an answer with a hundred thousand headers',
    verdict: 'E',
    billed: 'full',
    limits: { cpuMs: 5_000, wallMs: 20_000, memoryMb: 128 },
    handler: `const headers = new Headers(); for (let i = 0; i < 1e5; i++) headers.append('x-' + (i % 200), 'value'); return new Response('', { headers })`,
    expect: { code: /^(?:invalid-response|exception)$/ },
  },
  {
    id: 'F11b',
    group: 'flood',
    title: 'an answer with a header of five megabytes',
    verdict: 'E',
    billed: 'full',
    limits: { cpuMs: 5_000, wallMs: 20_000, memoryMb: 128 },
    handler: `return new Response('', { headers: { a: 'x'.repeat(5e6) } })`,
    expect: { code: /^(?:invalid-response|exception)$/ },
  },
  {
    id: 'F11c',
    group: 'flood',
    title: 'a cookie of fifteen kilobytes',
    verdict: 'OK',
    billed: 'full',
    handler: `return new Response(String((request.headers.get('cookie') ?? '').split(';').length))`,
    request: { headers: { cookie: 'a=b;'.repeat(3_700) } },
    expect: { body: '3701' },
  },
  {
    id: 'F11d',
    group: 'flood',
    title: 'two hundred deploys of nothing and a hundred lists of all functions, at once',
    verdict: 'R',
    billed: 'full',
    handler: 'return new Response("fine")',
    isRepeatable: false,
    attack: async ({ t, rig, call: own }) => {
      // The control plane takes 256 connections: those of answers that are read serve again.
      const statusOf = async (path: string, init?: RequestInit): Promise<number> => {
        const response = await askControl(rig.server, path, init)
        await response.text()
        return response.status
      }
      const empty = { method: 'POST', body: '{}' }
      const refused = await Promise.all(Array.from({ length: 200 }, () => statusOf('/v1/functions/a/revisions', empty)))
      t.strictSame(new Set(refused), new Set([400]))
      const asked = await Promise.all(Array.from({ length: 100 }, () => statusOf('/v1/functions')))
      t.strictSame(new Set(asked), new Set([200]))
      return { answers: [await own()] }
    },
  },
]

export const FLOOD_CLIENT_CASES: readonly IsolationCase[] = [...REJECTIONS, ...REQUESTS]
