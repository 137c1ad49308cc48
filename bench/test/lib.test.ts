import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Caller, failureLines, isOk } from '../src/lib/caller.ts'
import { parseJsonLine, startChildServer } from '../src/lib/child-server.ts'
import { runClosedLoop } from '../src/lib/closed-loop.ts'
import { readEnvironment, environmentLines } from '../src/lib/environment.ts'
import { OpenLoop } from '../src/lib/open-loop.ts'
import { atLeast, atMost, verdictLine } from '../src/lib/verdict.ts'

const server = createServer((request, response) => {
  if (request.url === '/reset') request.socket.destroy()
  else response.writeHead(request.url === '/bad' ? 500 : 200).end('text')
}).listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => server.close())
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

t.test('calls give their answers, and failed ones what went wrong', async (t) => {
  using caller = new Caller()
  const good = await caller.callAtOnce(`${origin}/`, 20)
  t.ok(good.every((result) => isOk(result) && result.body === 'text'))
  const bad = [await caller.call(`${origin}/bad`), await caller.call(`${origin}/reset`), await caller.call(`${origin}/bad`)]
  t.notOk(bad.some(isOk))
  t.strictSame(failureLines([...good, ...bad]), ['2 x status 500: text', '1 x ECONNRESET'])
})

t.test('a closed loop gives a rate, but none if a request failed', async (t) => {
  const load = { connections: 2, durationMs: 1000 }
  const { requestsPerSecond, responseBytes } = await runClosedLoop({ url: `${origin}/`, ...load })
  t.ok(requestsPerSecond > 0 && responseBytes > 4)
  await t.rejects(runClosedLoop({ url: `${origin}/bad`, ...load }), /were not 2xx/)
})

t.test('an open loop starts what is due without waiting for what came before', async (t) => {
  const enough = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const planned: number[] = []
  const loop = new OpenLoop(1000, async (plannedMs) => {
    planned.push(plannedMs)
    if (planned.length === 5) enough.resolve()
    await release.promise
  })
  loop.start()
  await enough.promise
  const stopped = loop.stop()
  release.resolve()
  await stopped
  t.ok(
    planned.slice(1).every((ms, index) => Math.abs(ms - (planned[index] ?? 0) - 1) < 1e-6),
    'evenly planned',
  )
})

t.test('a child server is ready when it says so', async (t) => {
  const script = 'console.log("loading"); console.log(JSON.stringify({ port: 7 })); setInterval(() => {}, 1000)'
  await using child = await startChildServer({
    command: process.execPath,
    args: ['-e', script],
    parseReady: (line) => parseJsonLine<{ port: number }>(line)?.port,
  })
  t.equal(child.ready, 7)
  t.ok(child.pid > 0)
})

t.test('a child server that ends before it is ready is an error with what it said', async (t) => {
  await t.rejects(
    startChildServer({
      command: process.execPath,
      args: ['-e', 'console.error("no port"); process.exit(4)'],
      parseReady: () => undefined,
    }),
    /exit code 4\)\.\nno port/,
  )
})

t.test('a verdict says what was wanted, and by how much it was missed', async (t) => {
  const ms = (value: number): string => `${value} ms`
  t.equal(verdictLine(atMost('demand', 'slowest', 7, 10, ms)), 'ok    slowest: 7 ms (at most 10 ms)')
  t.equal(verdictLine(atMost('demand', 'slowest', 12, 10, ms)), 'FAIL  slowest: 12 ms (at most 10 ms), off by 2 ms')
  t.equal(verdictLine(atLeast('aim', 'ratio', 1, 2, String)), 'miss  ratio: 1 (at least 2), off by 1')
})

t.test('the environment names machine, Node.js and packages, and no folder', async (t) => {
  const environment = readEnvironment()
  t.ok(environment.cores > 0 && environment.memoryBytes > 0)
  t.notMatch(Object.values(environment.packages), ['not installed'])
  const text = environmentLines(environment).join('\n')
  t.match(text, process.version)
  t.notMatch(text, process.cwd())
})
