/** Processes that stand still as a whole, as by a signal, a control group's freezer or a pause of the machine, and go on. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StatusInfo } from '@carpool/core'
import type { ServerAddress } from '@carpool/server/discovery'
import t, { type Test } from 'tap'
import { rowsOf } from '../support/ledger.ts'
import { startServer, until, type TestServer } from '../support/server.ts'

/** Says in its log which calls it begins. */
const COUNTED = `
  export default {
    async fetch(request) {
      const { pathname } = new URL(request.url)
      console.log('began ' + pathname)
      if (pathname === '/hold') await new Promise((done) => setTimeout(done, 600000))
      return new Response(pathname)
    }
  }`
/** Each call is a line of the log, of which 1000 are kept in ten seconds. */
const CALL_EVERY_MS = 25
/**
 * Hosts are looked at every 250 ms: of what was sent up to the first look after they stopped, it is not known if they read it.
 */
const MOST_LATE = 14
/** A host that says nothing for 5 s is replaced. */
const FROZEN_MS = 4_500
const SERVER_FROZEN_MS = 7_000

/** Started however busy the tests beside this one keep the machine. */
const ONE_STANDBY = ['--standby-hosts', '1', '--machine-full-percent', '100']

/** As by default: a queue that stands while the CPU seems full makes 503. */
const REFUSES_SOON = ['--queue-interval-ms', '1000', '--max-queue-ms', '30000']

type Host = StatusInfo['hosts'][number]

// Most of their time is waited.
t.jobs = 2

t.test(
  'while hosts stand still, their calls go to what stands by; none is lost or begins twice; then all is as before',
  { buffered: true },
  async (t) => {
    const flags = ['--min-hosts', '2', '--max-hosts', '2', ...ONE_STANDBY, ...REFUSES_SOON]
    const server = await startServer(t, flags)
    await server.deploy('counted', COUNTED)
    const before = await untilStarted(server, ['ready', 'ready', 'standby'])
    const frozen = before.filter(({ state }) => state === 'ready')
    const calls: Array<Promise<{ status: number; text: string; tookMs: number }>> = []
    const caller = setInterval(() => calls.push(call(server, `/counted/${calls.length}`)), CALL_EVERY_MS)
    t.teardown(() => clearInterval(caller))
    await until(async () => calls.length >= 10)
    stop(t, frozen)
    await passed(FROZEN_MS)
    for (const { pid } of frozen) process.kill(pid, 'SIGCONT')
    await until(async () => calls.length >= 220)
    clearInterval(caller)
    const answers = await Promise.all(calls)
    t.same(
      answers.filter(({ status, text }, index) => status !== 200 || text !== `/${index}`),
      [],
      'all are answered right',
    )
    const late = answers.filter(({ tookMs }) => tookMs > 2_500)
    // What the frozen hosts had read before, or may have, waits for them.
    t.ok(late.length <= MOST_LATE, `${late.length} of ${answers.length} calls took longer than 2.5 s`)
    const rows = await rowsOf(server, 'counted')
    t.equal(rows.length, calls.length, 'each has one record')
    t.same(
      rows.filter(({ outcome, attempts }) => outcome !== 'ok' || attempts !== 1),
      [],
      'and began once',
    )
    const seemsToRun = rows.filter(({ wall_us, queue_us }) => Number(wall_us) - Number(queue_us) > 500_000)
    t.ok(seemsToRun.length <= MOST_LATE, `${seemsToRun.length} have run for long; what began elsewhere has waited till then`)
    const began = await beganIn(server, 'counted')
    t.equal(new Set(began).size, began.length, 'by its log as well')
    t.equal(began.length, calls.length)
    const after = await untilHosts(server, ['ready', 'ready', 'standby'])
    t.same(pidsOf(after), pidsOf(before), 'nothing was replaced')
    t.equal(await strikes(server), 0)
  },
)

t.test('a host that stands still for so long that it is replaced is nobody’s fault', { buffered: true }, async (t) => {
  const server = await startServer(t, ['--min-hosts', '1', ...ONE_STANDBY])
  await server.deploy('counted', COUNTED)
  const [host] = await untilStarted(server, ['ready', 'standby'])
  const held = server.get('/counted/hold', { method: 'POST' })
  await server.untilLogged('counted', /began \/hold/)
  stop(t, [host!])
  await until(async () => (await server.status()).hosts.every(({ pid, state }) => pid !== host?.pid || state === 'poisoned'))
  t.equal((await server.get('/counted/other', { method: 'POST' })).status, 200)
  // It is killed in the end, with what it had begun.
  t.match(await (await held).json(), { code: 'host-lost' })
  await until(async () => (await server.status()).hosts.every(({ pid }) => pid !== host?.pid))
  t.equal(await strikes(server), 0)
})

t.test('a server that stood still itself takes no host for silent', { buffered: true }, async (t) => {
  const server = await startServer(t, ['--min-hosts', '1', '--max-hosts', '2', ...ONE_STANDBY])
  await server.deploy('counted', COUNTED)
  const before = await untilStarted(server, ['ready', 'standby'])
  void server.get('/counted/hold', { method: 'POST' }).catch(() => {})
  await server.untilLogged('counted', /began \/hold/)
  const pid = pidOf(server)
  stop(t, [{ pid }])
  await passed(SERVER_FROZEN_MS)
  process.kill(pid, 'SIGCONT')
  const seen = new Set<string>()
  const untilMs = performance.now() + 1_500
  while (performance.now() < untilMs) {
    for (const host of (await server.status()).hosts) seen.add(`${host.pid} ${host.state}`)
    await passed(10)
  }
  t.same([...seen].toSorted(), before.map((host) => `${host.pid} ${host.state}`).toSorted(), 'hosts stay what they were')
  const { decisions } = await server.status()
  t.same(decisions, [])
  t.equal(await strikes(server), 0)
})

async function call(server: TestServer, path: string): Promise<{ status: number; text: string; tookMs: number }> {
  const beganMs = performance.now()
  const response = await server.get(path, { method: 'POST' })
  return { status: response.status, text: await response.text(), tookMs: performance.now() - beganMs }
}

/** The server announces itself to commands. */
function pidOf({ stateDir }: TestServer): number {
  const file = readdirSync(stateDir).find((name) => name.endsWith('.json'))
  return (JSON.parse(readFileSync(join(stateDir, file ?? ''), 'utf8')) as ServerAddress).pid
}

/** Stops processes; they go on at the end of the test at the latest. */
function stop(t: Test, processes: ReadonlyArray<{ readonly pid: number }>): void {
  for (const { pid } of processes) {
    process.kill(pid, 'SIGSTOP')
    t.teardown(() => {
      try {
        process.kill(pid, 'SIGCONT')
      } catch {
        // It has ended.
      }
    })
  }
}

/** The time is what is tested. */
function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** The same, once all have started: until then a host has the pid of what stands in front of it. */
async function untilStarted(server: TestServer, states: readonly string[]): Promise<readonly Host[]> {
  return until(async () => {
    const hosts = await untilHosts(server, states)
    return hosts.every(({ state, loopUtilization }) => state !== 'standby' || loopUtilization > 0) && hosts
  })
}

async function untilHosts(server: TestServer, states: readonly string[]): Promise<readonly Host[]> {
  return until(async () => {
    const { hosts } = await server.status()
    return (
      hosts
        .map(({ state }) => state)
        .toSorted()
        .join() === states.toSorted().join() && hosts
    )
  })
}

function pidsOf(hosts: readonly Host[]): number[] {
  return hosts.map(({ pid }) => pid).toSorted((a, b) => a - b)
}

async function strikes(server: TestServer): Promise<number> {
  const metrics = await (await fetch(`${server.adminUrl}/metrics`)).text()
  return [...metrics.matchAll(/^carpool_function_strikes_total\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}

/** The calls that a function says it has begun. */
async function beganIn(server: TestServer, name: string): Promise<string[]> {
  const lines = await server.json<Array<{ msg: string }>>('logs', name, '--limit', '1000')
  return lines.flatMap(({ msg }) => (msg.startsWith('began ') ? [msg] : []))
}
