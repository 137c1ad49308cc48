/** A function that calls its host without end harms nobody but itself. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer, type TestServer } from '../support/server.ts'

const HOST_MAX_MB = 600
const FLOODERS = 3
/** The neighbour is called throughout, but leaves the CPU to the floods. */
const CALL_EVERY_MS = 5
/** For how long each of them floods. */
const FLOOD_MS = IS_WHOLE ? 2_000 : 1_000

const NEIGHBOUR = `
  export default {
    async fetch(request) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      return new Response('seen ' + new URL(request.url).search)
    }
  }`

/** A function whose handler runs a statement until the wall limit ends it. */
function flood(statement: string): Record<string, string> {
  return {
    'index.js': `export default { async fetch(request) { const to = new URL(request.url).searchParams.get('to'); for (;;) ${statement} } }`,
    'carpool.config.json': JSON.stringify({ timeoutMs: FLOOD_MS }),
  }
}

/**
 * Sends the flooding functions a call each and the neighbour calls until those are answered; checks that only the former
 * suffer.
 */
async function checkFlood(t: Test, server: TestServer, statement: string, query = ''): Promise<void> {
  await server.deploy('neighbour', NEIGHBOUR)
  const names = Array.from({ length: FLOODERS }, (_, index) => `flood-${index}`)
  for (const name of names) await server.deploy(name, flood(statement))
  const [before] = (await server.info()).hosts
  const flooding = { isOver: false }
  const floods = Promise.all(names.map(async (name) => (await server.get(`/${name}/${query}`)).json())).finally(() => {
    flooding.isOver = true
  })
  const wrong: string[] = []
  let calls = 0
  while (!flooding.isOver) {
    const response = await server.get(`/neighbour/?call=${++calls}`)
    const text = await response.text()
    if (text !== `seen ?call=${calls}`) wrong.push(`${response.status} ${text}`)
    await pause(CALL_EVERY_MS)
  }
  t.strictSame(wrong, [])
  for (const { code } of (await floods) as { code: string }[]) t.match(code, /^(?:timeout|cpu-exceeded|memory-exceeded)$/)
  const [after] = (await server.info()).hosts
  t.equal(after?.pid, before?.pid, 'the host lives')
  const status = readFileSync(`/proc/${before?.pid}/status`, 'utf8')
  const peakMb = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024
  t.ok(peakMb < HOST_MAX_MB, `${Math.round(peakMb)} MB at most, ${calls} calls of the neighbour`)
  t.comment(`host: ${Math.round(peakMb)} MB at most, ${calls} calls of the neighbour`)
}

t.test('floods of short log lines', async (t) => {
  const server = await startServer(t)
  await checkFlood(t, server, `console.log('x')`)
  const line = await server.untilLogged('flood-0', /dropped/)
  t.match(line, { level: 'warn', msg: /^… \d+ lines were dropped: the limit is 1000 lines or 1 MiB in 10 s$/ })
})

t.test('floods of long log lines', async (t) => {
  const server = await startServer(t)
  await checkFlood(t, server, `console.log('x'.repeat(16384))`)
})

t.test('floods of timers', async (t) => {
  await checkFlood(t, await startServer(t), `try { setTimeout(() => {}, 1e6) } catch {}`)
})

t.test('floods of cleared timers', async (t) => {
  await checkFlood(t, await startServer(t), `clearTimeout(setTimeout(() => {}, 1e6))`)
})

t.test('floods of fetches that nobody answers', async (t) => {
  const upstream = createServer(() => {})
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const { port } = upstream.address() as AddressInfo
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])
  await checkFlood(t, server, `fetch(to).catch(() => {})`, `?to=${encodeURIComponent(`http://127.0.0.1:${port}/`)}`)
})
