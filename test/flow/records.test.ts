/** Whatever becomes of a call, there is exactly one record of it, and it says so. */
import { Agent, request } from 'node:http'
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { readLedger } from '../support/ledger.ts'
import { startServer, until, type TestServer } from '../support/server.ts'

/** `npm run test:records` makes 10,000. */
const CALLS = Number(process.env['CARPOOL_TEST_CALLS'] ?? (IS_WHOLE ? 1_500 : 500))
const AT_ONCE = 48

interface Kind {
  readonly functionName: string
  readonly path?: string
  /** Of a hundred calls. */
  readonly share: number
  readonly outcome: string
  readonly status: number
  /** The client leaves as soon as the server has its request. */
  readonly leaves?: boolean
}

const FUNCTIONS: Readonly<Record<string, readonly [code: string, ...flags: string[]]>> = {
  fine: ['export default { fetch: () => new Response("fine") }'],
  async: ['export default { async fetch() { await new Promise((r) => setTimeout(r, 20)); return new Response("late") } }'],
  throwing: ['export default { fetch() { throw new Error("no") } }'],
  wrong: ['export default { fetch: () => "text" }'],
  slow: ['export default { fetch: () => new Promise(() => {}) }', '--timeout-ms', '60'],
  spinning: ['export default { fetch() { for (;;); } }', '--cpu-ms', '20'],
  greedy: ['export default { fetch() { const kept = []; for (;;) kept.push({ a: 1 }) } }', '--memory-mb', '8'],
  left: ['export default { fetch: () => new Promise(() => {}) }', '--timeout-ms', '20000'],
}

const KINDS: readonly Kind[] = [
  { functionName: 'fine', share: 58, outcome: 'ok', status: 200 },
  { functionName: 'async', share: 15, outcome: 'ok', status: 200 },
  { functionName: 'throwing', share: 8, outcome: 'exception', status: 500 },
  { functionName: 'wrong', share: 3, outcome: 'invalid-response', status: 502 },
  { functionName: 'slow', share: 4, outcome: 'timeout', status: 504 },
  { functionName: 'spinning', share: 3, outcome: 'cpu-exceeded', status: 502 },
  { functionName: 'greedy', share: 1, outcome: 'memory-exceeded', status: 502 },
  { functionName: 'left', share: 4, outcome: 'canceled', status: 499, leaves: true },
  { functionName: 'single', share: 4, outcome: 'refused', status: 429 },
]

interface Call {
  readonly kind: Kind
  readonly id: string | undefined
  readonly status: number
  readonly code: string | undefined
}

const server = await startServer(t)

t.test('records come into the database without anybody asking', async (t) => {
  await server.deploy('first', FUNCTIONS['fine']![0])
  await (await server.get('/first/')).text()
  const rows = await until(async () => {
    const found = readLedger(server.dataDir)
    return found.length > 0 ? found : undefined
  })
  t.match(rows, [{ function: 'first', outcome: 'ok' }])
})

t.test(`${CALLS} calls of all kinds have one record each, as they ended`, async (t) => {
  for (const [name, [code, ...flags]] of Object.entries(FUNCTIONS)) await server.deploy(name, code, ...flags)
  await server.deploy('single', {
    'index.js': 'export default { fetch: () => new Promise(() => {}) }',
    'carpool.config.json': '{"concurrency": 1, "timeoutMs": 600000}',
  })
  // It holds the only place of its function as long as the others come.
  const holder = send(server, 'single')
  await until(async () => (await server.info()).hosts.some(({ inFlight }) => inFlight > 0))

  const kinds = Array.from({ length: CALLS }, (_, index) => kindOf(index))
  const calls: Call[] = []
  const next = kinds.values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const kind of next) calls.push(await call(server, kind))
    }),
  )
  holder.abort()

  for (const { kind, status, code } of calls) {
    if (kind.leaves) continue
    if (status !== kind.status) t.equal(status, kind.status, `${kind.functionName} was answered with ${code}`)
  }
  const records = await until(async () => {
    const rows = readLedger(server.dataDir).filter((row) => row.function !== 'first')
    return rows.length > CALLS && rows
  })
  t.equal(records.length, CALLS + 1, 'one for each call, and the one that held the place')
  t.equal(new Set(records.map(({ id }) => id)).size, records.length, 'none twice')
  const byId = new Map(records.map((record) => [record.id, record]))
  for (const { id, kind } of calls) {
    if (id === undefined) continue
    const record = byId.get(id)
    if (record?.outcome !== kind.outcome || record.status !== kind.status)
      t.match(record, { outcome: kind.outcome, status: kind.status }, `${kind.functionName} ${id}`)
  }
  for (const { functionName, outcome } of KINDS) {
    const expected = kinds.filter((kind) => kind.functionName === functionName).length
    const held = functionName === 'single' ? 1 : 0
    const found = records.filter((record) => record.function === functionName)
    t.equal(found.length, expected + held, `${functionName} was called ${expected} times`)
    t.equal(found.filter((record) => record.outcome === outcome).length, expected, `all of them ended ${outcome}`)
  }
  const negative = records.filter((record) => Object.values(record).some((figure) => typeof figure === 'number' && figure < 0))
  t.strictSame(negative, [])
  const overCpu = records.filter(({ outcome }) => outcome === 'cpu-exceeded').map(({ cpu_us }) => Number(cpu_us))
  t.strictSame(
    overCpu.filter((cpuUs) => cpuUs < 20_000 || cpuUs > 70_000),
    [],
    'who passed the limit of 20 ms is billed for that, and for no more than 50 ms on top',
  )
})

function kindOf(index: number): Kind {
  let left = (index * 37) % 100
  for (const kind of KINDS) {
    if (left < kind.share) return kind
    left -= kind.share
  }
  throw new Error('The shares do not add up to a hundred.')
}

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })

function send({ url }: TestServer, functionName: string): AbortController {
  const controller = new AbortController()
  request(`${url}/${functionName}/`, { signal: controller.signal })
    .on('error', () => {})
    .end()
  return controller
}

function call({ url }: TestServer, kind: Kind): Promise<Call> {
  return new Promise((resolve, reject) => {
    const leaves = kind.leaves === true
    const options = leaves ? { agent: false, headers: { expect: '100-continue' } } : { agent }
    const outgoing = request(`${url}/${kind.functionName}/`, options, (response) => {
      response.resume()
      response.once('end', () => {
        const { 'x-carpool-invocation': id, 'x-carpool-error': code } = response.headers
        resolve({ kind, id: String(id), status: response.statusCode ?? 0, code: code as string | undefined })
      })
    })
    outgoing.once('error', (cause) => (leaves ? resolve({ kind, id: undefined, status: 499, code: undefined }) : reject(cause)))
    outgoing.once('continue', () => outgoing.destroy())
    outgoing.end()
  })
}
