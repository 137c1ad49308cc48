/** The egress as the server has it: with a thread that does the work, and that may end. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { startEgressThread } from '../src/egress.ts'
import { Egress, type EgressOptions, type EgressResult } from '../src/index.ts'
import { afterDeath, type ThreadDeaths } from '../src/restart-delay.ts'
import { listen, LOOPBACK, requestOf, upstream, type Request } from './fixtures/upstream.ts'

type Head = { ok: true; status: number } | { ok: false; message: string }
type Result = Omit<EgressResult, 'result'> & Head

function egressOf(t: Test, options: EgressOptions = {}, parts?: ConstructorParameters<typeof Egress>[1]): Egress {
  const egress = new Egress({ allow: LOOPBACK, ...options }, parts)
  t.teardown(() => egress.close())
  return egress
}

function fetchBy(egress: Egress, url: string, request?: Request): Promise<Result> {
  return new Promise((resolve) => {
    egress.fetch(requestOf(url, request), ({ result, ...rest }) => resolve({ ...(JSON.parse(result) as Head), ...rest }))
  })
}

const text = ({ body }: Result): string => Buffer.from(body).toString()

/** A server that answers nothing at `/held`, and tells when something has come there. */
async function holding(t: Test): Promise<{ origin: string; held: () => Promise<unknown> }> {
  const server = createServer((request, response) => {
    if (request.url === '/held') server.emit('held')
    else response.end('answered')
  })
  const port = await listen(t, server)
  return { origin: `http://127.0.0.1:${port}`, held: () => once(server, 'held') }
}

/** An egress of which the test has the threads. */
function withThreads(t: Test, pingMs = 60_000): { egress: Egress; threads: Worker[]; lost: number[] } {
  const threads: Worker[] = []
  const lost: number[] = []
  const egress = egressOf(
    t,
    { onThreadLost: ({ restartInMs }) => lost.push(restartInMs) },
    {
      pingMs,
      startThread: (...args) => {
        const thread = startEgressThread(...args)
        threads.push(thread)
        return thread
      },
    },
  )
  return { egress, threads, lost }
}

t.test('bodies go to the thread and come back', async (t) => {
  const origin = await upstream(t, (request, response) => void buffer(request).then((body) => response.end(body)))
  const egress = egressOf(t)
  for (const bytes of [0, 1, 5_000, 3_000_000]) {
    const body = new Uint8Array(bytes).fill(7)
    const result = await fetchBy(egress, origin, { method: 'POST', body })
    t.match(result, { ok: true, status: 200, end: 'ok', bytesOut: bytes, bytesIn: bytes })
    t.ok(Buffer.from(body).equals(result.body), `${bytes} bytes`)
  }
  const many = await Promise.all(
    Array.from({ length: 200 }, (_, index) => fetchBy(egress, origin, { method: 'POST', body: Buffer.from(`body ${index}`) })),
  )
  t.ok(many.every((result, index) => text(result) === `body ${index}`))
  t.same(egress.ended, { ok: 204, refused: 0, failed: 0, aborted: 0 })
})

t.test('a fetch that is stopped says what went over until then', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const origin = await upstream(t, (request, response) => {
    response.write('some')
    request.on('data', () => {}).on('end', () => arrived.resolve())
  })
  const egress = egressOf(t)
  const settled = Promise.withResolvers<EgressResult>()
  const { stop } = egress.fetch(requestOf(origin, { method: 'POST', body: Buffer.from('12345') }), settled.resolve)
  await arrived.promise
  stop()
  stop()
  t.match(await settled.promise, {
    end: 'aborted',
    bytesOut: 5,
    result: JSON.stringify({ ok: false, message: 'The fetch was aborted.' }),
  })
  stop()
  t.same(egress.ended, { ok: 0, refused: 0, failed: 0, aborted: 1 })
})

t.test('nothing that a host can send ends the thread', async (t) => {
  const origin = await upstream(t, (_request, response) => response.end('alive'))
  const { egress, threads } = withThreads(t)
  const heads = [
    '',
    'null',
    '5',
    '[]',
    '{"method":"GET"',
    '{}',
    ...[{ method: 5 }, { url: null }, { headers: {} }, { headers: [['a']] }, { redirect: 'elsewhere' }].map((fault) =>
      JSON.stringify({ method: 'GET', url: origin, headers: [], redirect: 'follow', ...fault }),
    ),
  ]
  for (const head of heads) {
    const settled = Promise.withResolvers<EgressResult>()
    egress.fetch({ ...requestOf(origin), head }, settled.resolve)
    const { end, result } = await settled.promise
    t.match({ end, ...JSON.parse(result) }, { end: 'refused', ok: false, message: /^The .+\.$/ }, head)
  }
  t.match(await fetchBy(egress, `${origin}/${'x'.repeat(70_000)}`), {
    end: 'refused',
    message: /have \d+ characters; the limit is 65536\.$/,
  })
  t.equal(text(await fetchBy(egress, origin)), 'alive')
  t.equal(threads.length, 1)
})

t.test('a thread that ends fails what it was at, and the next one goes on at once', async (t) => {
  const { origin, held } = await holding(t)
  const { egress, threads, lost } = withThreads(t)
  const arrived = held()
  const atWork = fetchBy(egress, `${origin}/held`)
  await arrived
  await threads[0]?.terminate()
  t.match(await atWork, {
    ok: false,
    end: 'failed',
    message: 'The server lost the fetch by a fault of its own; the request may have been sent.',
  })
  t.equal(text(await fetchBy(egress, origin)), 'answered')
  t.same(lost, [0])

  await threads[1]?.terminate()
  t.same(lost, [0, 100], 'the one after that waits a little')
  t.match(await fetchBy(egress, origin), {
    ok: false,
    message: 'The server can make no connections to the outside at the moment.',
  })
  let result = await fetchBy(egress, origin)
  while (!result.ok) {
    await setTimeout(2)
    result = await fetchBy(egress, origin)
  }
  t.equal(text(result), 'answered')
  t.equal(threads.length, 3)
})

t.test('the thread starts with the first fetch', async (t) => {
  const { origin } = await holding(t)
  const { egress, threads } = withThreads(t)
  t.equal(threads.length, 0)
  t.equal(text(await fetchBy(egress, origin)), 'answered')
  t.equal(threads.length, 1)
})

t.test('where no thread can be started, fetches fail later, and the next tries again', async (t) => {
  const { origin } = await holding(t)
  const lost: number[] = []
  let starts = 0
  const startThread = (): never => {
    starts += 1
    throw new Error('no more threads')
  }
  const egress = egressOf(t, { onThreadLost: ({ restartInMs }) => lost.push(restartInMs) }, { pingMs: 60_000, startThread })
  for (let fetch = 0; fetch < 3; fetch += 1) {
    let isSettled = false
    const settled = new Promise<EgressResult>((resolve) => {
      egress.fetch(requestOf(origin), (result) => {
        isSettled = true
        resolve(result)
      })
    })
    t.notOk(isSettled, 'not before it has returned')
    t.match((await settled).result, /can make no connections/)
  }
  t.same(lost, [0, 100])
  t.equal(starts, 2, 'the third comes before it may try again')
})

t.test('a thread that is stuck counts as ended', async (t) => {
  const threads: Worker[] = []
  let isStuck = true
  const egress = egressOf(
    t,
    {},
    {
      pingMs: 10,
      startThread: (...args) => {
        const thread = startEgressThread(...args)
        threads.push(thread)
        if (isStuck) thread.postMessage = () => {}
        return thread
      },
    },
  )
  const { origin } = await holding(t)
  const stuck = fetchBy(egress, origin)
  isStuck = false
  t.match(await stuck, { ok: false, end: 'failed', message: /fault of its own/ })
  t.equal(threads.length, 1)
  egress.fetch(requestOf(origin), () => {})
  t.equal(threads.length, 2)
})

t.test('what the thread holds is known', async (t) => {
  const { origin, held } = await holding(t)
  const { egress } = withThreads(t, 1_000)
  const arrived = held()
  const settled = Promise.withResolvers<EgressResult>()
  const { stop } = egress.fetch(requestOf(`${origin}/held`), settled.resolve)
  await arrived
  while (egress.reading.open === 0) await setTimeout(2)
  t.match(egress.reading, { open: 1, waiting: 0, connections: 1 })
  stop()
  await settled.promise
})

t.test('fetches fail once the egress is closed, those at work too', async (t) => {
  const { origin, held } = await holding(t)
  const egress = egressOf(t)
  const arrived = held()
  const atWork = fetchBy(egress, `${origin}/held`)
  await arrived
  await egress.close()
  const refused = { ok: false, end: 'failed', message: 'The server is shutting down.' }
  t.match(await atWork, refused)
  t.match(await fetchBy(egress, origin), refused)
})

t.test('a range that is none is refused by name, and no thread is started for it', async (t) => {
  const parts = { pingMs: 60_000, startThread: () => t.fail('was started') as never }
  t.throws(() => new Egress({ allow: ['10.0.0.0/99'] }, parts), { code: 'invalid-setting', message: /"10\.0\.0\.0\/99"/ })
  t.throws(() => new Egress({ deny: ['example.com'] }, parts), { code: 'invalid-setting', message: /"example\.com"/ })
})

t.test('no proxy of the environment is used', async (t) => {
  const proxy = createServer(() => t.fail('was used')).on('connect', () => t.fail('was used'))
  const proxyUrl = `http://127.0.0.1:${await listen(t, proxy)}`
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'all_proxy', 'NODE_USE_ENV_PROXY']
  for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxyUrl
  t.teardown(() => names.forEach((name) => delete process.env[name]))
  const { origin } = await holding(t)
  t.equal(text(await fetchBy(egressOf(t), origin)), 'answered')
})

t.test('threads are started again at once, then ever more slowly while they keep ending', async (t) => {
  const delays: number[] = []
  let deaths: ThreadDeaths | undefined
  for (let death = 0; death < 9; death += 1) delays.push((deaths = afterDeath(deaths, 50)).delayMs)
  t.same(delays, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000])
  t.same(afterDeath(deaths, 60_000), { inARow: 1, delayMs: 0 }, 'one that lived for a minute begins a new count')
})
