/** What becomes of the stream of a response that is too long to be collected, or that nobody waits for any more. */
import t from 'tap'
import { startServer, until } from '../support/server.ts'

const CLIENTS = 200

const STREAMS = `
  const counts = { begun: 0, pulled: 0, canceled: 0 }
  const waitFor = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const endless = (ms) => new ReadableStream({
    start() { counts.begun++ },
    async pull(controller) { counts.pulled++; await waitFor(ms); controller.enqueue(new Uint8Array(10_000)) },
    cancel(reason) { counts.canceled++; console.log('canceled', reason.name) },
  }, { highWaterMark: 0 })
  export default {
    async fetch(request, env, ctx) {
      switch (new URL(request.url).pathname) {
        case '/slow':
          request.signal.addEventListener('abort', () => console.log('aborted'))
          console.log('begins')
          return new Response(endless(20).pipeThrough(new TransformStream()))
        case '/many':
          return new Response(endless(20))
        case '/fast':
          return new Response(endless(0))
        case '/late':
          request.signal.addEventListener('abort', () => console.log('aborted'))
          await waitFor(60000)
          return new Response(endless(20))
        case '/beside':
          console.log('beside')
          for (let count = 0; count < 50; count++) await waitFor(10)
          return new Response('fine')
      }
      return Response.json(counts)
    },
  }`

t.test('streams of responses', async (t) => {
  const server = await startServer(t, ['--max-body-bytes', '1000000'])
  const files = { 'index.js': STREAMS, 'carpool.config.json': '{"concurrency": 500, "timeoutMs": 60000}' }
  await server.deploy('streams', files)
  await server.deploy('hurried', { ...files, 'carpool.config.json': '{"timeoutMs": 500}' })
  const counts = async (): Promise<{ begun: number; pulled: number; canceled: number }> =>
    (await server.get('/streams/')).json() as never

  await t.test('one that is too long for who wants it whole is refused, and ended', async (t) => {
    const { stderr } = await server.carpool('invoke', 'streams', '--path', '/fast')
    t.match(stderr, /at least 1\d{6} bytes; the limit is 1000000/)
    const { pulled, canceled } = await counts()
    // The function may be a window ahead.
    t.ok(pulled > 100 && pulled < 180, `${pulled} pulled`)
    t.equal(canceled, 1)
  })

  await t.test('one whose client leaves is ended', async (t) => {
    const client = new AbortController()
    const response = await server.get('/streams/slow', { signal: client.signal })
    client.abort()
    await t.rejects(response.text())
    await server.untilLogged('streams', /"msg":"aborted"/)
    await server.untilLogged('streams', /"msg":"canceled AbortError"/)
    await server.recorded()
  })

  await t.test('the wall limit is one of its head', async (t) => {
    t.match(await (await server.get('/hurried/late')).json(), { code: 'timeout', status: 504 })
    await server.untilLogged('hurried', /"msg":"aborted"/)
    const client = new AbortController()
    const response = await server.get('/hurried/slow', { signal: client.signal })
    const reader = response.body!.getReader()
    const endsMs = performance.now() + 1_000
    while (performance.now() < endsMs) t.equal((await reader.read()).done, false)
    client.abort()
    await server.untilLogged('hurried', /"msg":"canceled AbortError"/)
  })

  await t.test('those of two hundred clients that leave cost the other calls nothing', async (t) => {
    const before = await counts()
    const client = new AbortController()
    const calls = Array.from({ length: CLIENTS }, () => server.get('/streams/many', { signal: client.signal }))
    const gone = Promise.allSettled(calls)
    const beside = Promise.all(Array.from({ length: 5 }, () => server.get('/streams/beside')))
    await until(async () => (await counts()).begun === before.begun + CLIENTS)
    client.abort()
    await gone
    const { pulled } = await until(async () => {
      const now = await counts()
      return now.canceled === before.canceled + CLIENTS && now
    })
    for (const response of await beside) t.equal(await response.text(), 'fine')
    t.equal((await counts()).pulled, pulled, 'nothing was pulled meanwhile')
  })
})
