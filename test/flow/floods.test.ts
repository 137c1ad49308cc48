/** A function that calls its host without end harms nobody but itself. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer, type TestServer } from '../support/server.ts'

const HOST_MAX_MB = 600
const FLOODERS = IS_WHOLE ? 3 : 2
/** The neighbour is called throughout, but leaves the CPU to the floods. */
const CALL_EVERY_MS = 5
/** For how long each of them floods. */
const FLOOD_MS = IS_WHOLE ? 2_000 : 700

const NEIGHBOUR = `
  export default {
    async fetch(request) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      return new Response('seen ' + new URL(request.url).search)
    }
  }`

const STATEMENTS = {
  short: `console.log('x')`,
  long: `console.log('x'.repeat(16384))`,
  timers: `try { setTimeout(() => {}, 1e6) } catch {}`,
  cleared: `clearTimeout(setTimeout(() => {}, 1e6))`,
  fetches: `fetch(to).catch(() => {})`,
}
type Statement = keyof typeof STATEMENTS

/** Its handler runs the statement that the query names until the wall limit ends it. */
const FLOOD = {
  'index.js': `export default {
    async fetch(request) {
      const query = new URL(request.url).searchParams
      const to = query.get('to')
      switch (query.get('what')) {
        ${Object.entries(STATEMENTS)
          .map(([what, statement]) => `case '${what}': for (;;) ${statement}`)
          .join('\n')}
      }
    }
  }`,
  'carpool.config.json': JSON.stringify({ timeoutMs: FLOOD_MS }),
}

/** In the whole form each test has a server of its own. In the short one they share it, with the host and its functions. */
const shared = IS_WHOLE ? undefined : await startFlooded(t)

async function startFlooded(t: Test): Promise<TestServer> {
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])
  await server.deploy('neighbour', NEIGHBOUR)
  return server
}

/**
 * Sends the flooding functions a call each and the neighbour calls until those are answered; checks that only the former
 * suffer.
 * @param set functions of this name, with a number
 */
async function checkFlood(t: Test, what: Statement, set = 'flood', query = ''): Promise<TestServer> {
  const server = shared ?? (await startFlooded(t))
  const names = Array.from({ length: FLOODERS }, (_, index) => `${set}-${index}`)
  const deployed = new Set((await server.json<Array<{ name: string }>>('list')).map(({ name }) => name))
  for (const name of names) if (!deployed.has(name)) await server.deploy(name, FLOOD)
  const [before] = (await server.info()).hosts
  const flooding = { isOver: false }
  const call = async (name: string): Promise<unknown> => (await server.get(`/${name}/?what=${what}${query}`)).json()
  const floods = Promise.all(names.map(call)).finally(() => {
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
  return server
}

t.test('floods of short log lines', async (t) => {
  const server = await checkFlood(t, 'short')
  const line = await server.untilLogged('flood-0', /dropped/)
  t.match(line, { level: 'warn', msg: /^… \d+ lines were dropped: the limit is 1000 lines or 1 MiB in 10 s$/ })
})

t.test('floods of long log lines', async (t) => {
  // By now the others may log nothing for a while.
  await checkFlood(t, 'long', 'long')
})

t.test('floods of timers', async (t) => {
  await checkFlood(t, 'timers')
})

t.test('floods of cleared timers', async (t) => {
  await checkFlood(t, 'cleared')
})

t.test('floods of fetches that nobody answers', async (t) => {
  const upstream = createServer(() => {})
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const { port } = upstream.address() as AddressInfo
  await checkFlood(t, 'fetches', 'flood', `&to=${encodeURIComponent(`http://127.0.0.1:${port}/`)}`)
})
