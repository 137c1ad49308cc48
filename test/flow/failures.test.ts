/** What becomes of calls whose function fails: a problem document with a stable code, and the rest in the function's log. */
import t from 'tap'
import { ROOT } from '../support/command.ts'
import { IS_WHOLE } from '../support/form.ts'
import { startServer, until } from '../support/server.ts'

const FAILING = `
  interface Shop { readonly open: boolean }
  const shops: Shop[] = []
  export default {
    async fetch(request: Request, env: unknown, ctx: { waitUntil(work: Promise<unknown>): void }): Promise<Response> {
      switch (new URL(request.url).pathname) {
        case '/throw':
          return Response.json(shops[0]!.open)
        case '/reject':
          await null
          throw { not: 'an error' }
        case '/text':
          return 'text' as never
        case '/nothing':
          return undefined as never
        case '/wait':
          return new Promise(() => {})
        case '/header':
          return new Response('', { headers: { a: 'b\\r\\nc: d' } })
        case '/large':
          return new Response('x'.repeat(2_000_000))
        case '/memory': {
          const kept = []
          for (;;) kept.push({ a: 1 })
        }
        case '/traced':
          console.error(new Error('shown'))
          setTimeout(() => { throw new Error('timed') })
          ctx.waitUntil(Promise.reject(new Error('behind')))
          queueMicrotask(() => { throw new Error('queued') })
          return new Response('fine')
        case '/left':
          for (const reason of ['one', 'two']) void Promise.reject(new Error(reason))
          void Promise.reject(new Error('awaited later')).catch(() => {})
          return new Response('fine')
        default:
          return new Response('fine')
      }
    },
  }`

t.test('failing functions', async (t) => {
  const server = await startServer(t, ['--max-body-bytes', '1000000'])
  await server.deploy('failing', { 'src/index.ts': FAILING, 'carpool.config.json': '{"timeoutMs": 3000, "memoryMb": 32}' })
  const cases: Array<[path: string, status: number, code: string, detail: RegExp]> = [
    ['/throw', 500, 'exception', /log/],
    ['/reject', 500, 'exception', /log/],
    ['/header', 500, 'exception', /log/],
    ['/text', 502, 'invalid-response', /Response/],
    ['/nothing', 502, 'invalid-response', /Response/],
    ['/large', 502, 'invalid-response', /2000000 bytes; the limit is 1000000/],
    ['/wait', 504, 'timeout', /3000 ms/],
    ['/memory', 502, 'memory-exceeded', /32 MiB/],
  ]
  for (const [path, status, code, detail] of cases) {
    await t.test(`${path} is answered ${status} ${code}`, async (t) => {
      const response = await server.get(`/failing${path}`)
      const text = await response.text()
      t.equal(response.status, status)
      t.equal(response.headers.get('content-type'), 'application/problem+json')
      t.equal(response.headers.get('x-carpool-error'), code)
      const id = response.headers.get('x-carpool-invocation')
      t.match(JSON.parse(text), { status, code, detail, invocationId: id })
      t.notMatch(text, ROOT)
      t.notMatch(text, /\/tmp|node:internal|isolated-vm|\.ts:/)
      const line = await server.untilLogged('failing', new RegExp(`"invocationId":"${id}","msg":"${code}: `))
      t.equal(line.level, 'error')
      t.equal(await (await server.get('/failing/')).text(), 'fine', 'the next call works')
    })
  }

  t.test('the stack of a throw is in the log, in positions of the author', async (t) => {
    const line = await server.untilLogged('failing', /exception: TypeError/)
    t.match(line.msg, /src\/index\.ts:8:\d+/)
    t.notMatch(line.msg, ROOT)
    t.equal(line.stream, 'carpool')
  })

  t.test('so are the stacks of what it writes, and of what nobody catches', async (t) => {
    t.equal(await (await server.get('/failing/traced')).text(), 'fine')
    const traced: ReadonlyArray<readonly [title: string, line: number]> = [
      ['Error: shown', 27],
      ['Uncaught error in a timer: Error: timed', 28],
      ['Uncaught rejection in waitUntil: Error: behind', 29],
      ['Uncaught error in a microtask: Error: queued', 30],
    ]
    for (const [title, position] of traced) {
      const line = await server.untilLogged('failing', new RegExp(`"msg":"${title}`))
      t.match(line.msg, new RegExp(`src/index\\.ts:${position}:\\d+`), title)
      t.notMatch(line.msg, /carpool:runtime|failing\.js/, title)
      t.equal(line.stream, 'console', title)
    }
  })

  t.test('promises that are rejected and that nobody awaits are in the log, and among the metrics of the function', async (t) => {
    const count = async (): Promise<number> => {
      const response = await fetch(`${server.adminUrl}/metrics`)
      return Number(/^carpool_function_unhandled_rejections_total\{function="failing"\} (\d+)$/m.exec(await response.text())?.[1])
    }
    const before = await count()
    t.equal(await (await server.get('/failing/left')).text(), 'fine')
    for (const reason of ['one', 'two']) {
      const line = await server.untilLogged('failing', new RegExp(`"msg":"Uncaught rejection of a promise: Error: ${reason}`))
      t.match(line.msg, /src\/index\.ts:33:\d+/)
    }
    await until(async () => (await count()) >= before + 2)
    t.equal(await count(), before + 2)
  })
})

/** Shared, by functions with names of their own. */
const server = await startServer(t)

t.test('a client that leaves frees its place', async (t) => {
  await server.deploy('narrow', {
    'index.js': `
      export default {
        fetch(request) {
          if (!request.url.endsWith('/hold')) return new Response('fine')
          console.log('holds')
          return new Promise(() => request.signal.addEventListener('abort', () => console.log('left')))
        }
      }`,
    // No end by time can be what frees the place.
    'carpool.config.json': '{"concurrency": 1, "timeoutMs": 900000}',
  })
  const controller = new AbortController()
  const call = server.get('/narrow/hold', { signal: controller.signal })
  await server.untilLogged('narrow', /"msg":"holds"/)
  t.equal((await server.get('/narrow/')).status, 429)
  controller.abort()
  await t.rejects(call)
  await server.untilLogged('narrow', /"msg":"left"/)
  const next = await until(async () => {
    const response = await server.get('/narrow/')
    return response.status !== 429 && response
  })
  t.equal(await next.text(), 'fine', 'the next call is let in')
})

t.test('a response of half a gigabyte is refused where it is made, and holds nobody up', async (t) => {
  await server.deploy('huge', {
    'index.js': `export default { fetch: () => new Response('x'.repeat(2 ** 29 - 100)) }`,
    'carpool.config.json': '{"cpuMs": 10000}',
  })
  await server.deploy('quiet', `export default { fetch: () => new Response('quiet') }`)
  const huge = Promise.all(Array.from({ length: IS_WHOLE ? 4 : 2 }, () => server.get('/huge/')))
  for (let count = 0; count < 10; count++) t.equal((await server.get('/quiet/')).status, 200)
  for (const response of await huge) {
    t.equal(response.status, 502)
    t.match(await response.json(), { code: /invalid-response|memory-exceeded|isolate-lost/ })
  }
})

// The last: one of its loops goes on.
t.test('an endless loop is ended, its neighbour answers throughout, and the function works again', async (t) => {
  const looping = `export default { fetch(request) { if (request.url.endsWith('/loop')) for (;;); return new Response('fine') } }`
  await server.deploy('looping', { 'index.js': looping, 'carpool.config.json': '{"timeoutMs": 500}' })
  // Far longer than the calls of its neighbour take: they are answered beside it, or not before its end.
  const limits = '{"timeoutMs": 30000, "cpuMs": 30000}'
  await server.deploy('lasting', { 'index.js': looping, 'carpool.config.json': limits })
  await server.deploy('neighbour', `export default { fetch: () => new Response('ok') }`)
  const state = { pending: true }
  const loop = server.get('/looping/loop').finally(() => (state.pending = false))
  while (state.pending) t.equal(await (await server.get('/neighbour/')).text(), 'ok')
  t.match(await (await loop).json(), { code: 'timeout', status: 504 })
  // Calls that come before the isolate is found stuck end with it; then there is a new one.
  for (;;) {
    const response = await server.get('/looping/')
    if (response.status === 200) break
    t.match(await response.json(), { status: /50[24]/, code: /isolate-lost|timeout/ })
  }
  const lasting = { pending: true }
  void server
    .get('/lasting/loop')
    .catch(() => {})
    .finally(() => (lasting.pending = false))
  await until(async () => (await server.status()).hosts.some(({ enteredIsolates }) => enteredIsolates > 0))
  for (let count = 0; count < 50; count++) t.equal(await (await server.get('/neighbour/')).text(), 'ok')
  t.ok(lasting.pending, 'the neighbour answered 50 times while the other runs')
})
