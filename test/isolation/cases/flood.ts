/** Group C4 of the list of attacks, first half: calls of the host without end. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readLog } from '../harness/control.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { bursts, checkGrowth, ENDED, floods } from './flood-kit.ts'

/** Lines of one function that are kept in ten seconds, */
const MAX_LINES = 1_010
/** and of each call one that tells what was dropped, one that tells how it ended, and its report. */
const LINES_PER_CALL = 3

const checkLog: NonNullable<IsolationCase['check']> = async (context, outcome) => {
  const { t, rig, name } = context
  await checkGrowth(context, outcome)
  await rig.server.untilLogged(name, /dropped/)
  const lines = await readLog(rig.server, name, 10_000)
  t.ok(lines.length <= MAX_LINES + LINES_PER_CALL * outcome.answers.length, `${lines.length} lines are kept`)
  const folder = join(rig.server.dataDir, 'logs')
  const bytes = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.includes(name))
    .reduce((sum, file) => sum + statSync(join(folder, file)).size, 0)
  t.ok(bytes < 4 * 1024 * 1024, `${bytes} bytes on disk`)
}

const LOGS: readonly IsolationCase[] = [
  floods('F01a', 'short lines without end', `for (;;) console.log('x')`, { check: checkLog }),
  bursts('F01b', 'fifty thousand lines', `for (let i = 0; i < 50_000; i++) console.log('line ' + i)`, {
    // That lines were dropped is told at the end of the window.
    check: async (context, outcome) => {
      await checkGrowth(context, outcome)
      const lines = await readLog(context.rig.server, context.name, 10_000)
      context.t.ok(lines.length <= MAX_LINES + LINES_PER_CALL * outcome.answers.length, `${lines.length} lines are kept`)
    },
  }),
  bursts('F01c', 'one line of a hundred megabytes', `console.log('x'.repeat(1e8))`, {
    // The text takes most of its memory, so it may be given no more calls.
    limits: { cpuMs: 5_000, wallMs: 20_000, memoryMb: 128 },
    again: 'any',
    check: async (context, outcome) => {
      await checkGrowth(context, outcome)
      const line = await context.rig.server.untilLogged(context.name, /more characters/)
      context.t.ok(line.msg.length < 20_000, `${line.msg.length} characters`)
    },
  }),
  floods(
    'F01d',
    'lines from microtasks',
    `(function next() { console.log('x'); queueMicrotask(next) })(); await new Promise(() => {})`,
    { check: checkLog },
  ),
  {
    ...floods('F01e', 'lines after the answer', ''),
    handler: `setTimeout(() => { for (;;) console.log('x'.repeat(500)) }, 1); return new Response('fine')`,
    verdict: 'OK',
    billed: 'full',
    expect: { body: 'fine' },
    again: 'any',
    isRepeatable: false,
    check: checkLog,
  },
  floods(
    'F01f',
    'lines of every console method',
    `for (;;) for (const write of ['log', 'error', 'warn', 'debug', 'table', 'dir', 'trace']) console[write]([{ a: 1 }])`,
    {
      check: checkLog,
    },
  ),
]

const OUTLIVED: Partial<IsolationCase> = { verdict: 'E', expect: ENDED, again: 'any', leavesWork: true, isRepeatable: false }

const CALLS: readonly IsolationCase[] = [
  floods('F02a', 'fetches without end, without await', 'for (;;) fetch(env.UPSTREAM + "hold").catch(() => {})', {
    check: checkConnections,
  }),
  bursts(
    'F02b',
    'twenty thousand fetches at once',
    'for (let i = 0; i < 2e4; i++) fetch(env.UPSTREAM + "hold").catch(() => {})',
    {
      limits: { cpuMs: 20_000, wallMs: 60_000, memoryMb: 128 },
      check: checkConnections,
      isRepeatable: false,
    },
  ),
  floods(
    'F02c',
    'fetches that are ended at once',
    'for (;;) { const ended = new AbortController(); fetch(env.UPSTREAM + "hold", { signal: ended.signal }).catch(() => {}); ended.abort() }',
  ),
  // Between its entries it is told that its time is up, so it lives on, and so does what it left behind.
  floods('F02d', 'fetches of what is refused', 'for (;;) await fetch(env.CANARY).catch(() => {})', OUTLIVED),
  floods('F04a', 'random bytes without end', 'const bytes = new Uint8Array(65536); for (;;) crypto.getRandomValues(bytes)'),
  floods('F04b', 'random ids without end', 'for (;;) crypto.randomUUID()'),
  floods('F04c', 'timers without end', 'for (;;) try { setTimeout(() => {}, 1e6) } catch {}'),
  floods('F04d', 'timers that are taken back', 'for (;;) clearTimeout(setTimeout(() => {}, 1e6))'),
  floods(
    'F04e',
    'timers that are due at once',
    '(function next() { for (let i = 0; i < 10; i++) try { setTimeout(next, 0) } catch {} })(); await new Promise(() => {})',
    OUTLIVED,
  ),
  floods(
    'F04f',
    'an interval that is due at once',
    'for (let i = 0; i < 1000; i++) setInterval(() => { for (let i = 0; i < 1000; i++); }, 0); await new Promise(() => {})',
    OUTLIVED,
  ),
  floods('F04g', 'times without end', 'for (;;) { Date.now(); performance.now(); new Date() }'),
]

async function checkConnections(...[context, outcome]: Parameters<NonNullable<IsolationCase['check']>>): Promise<void> {
  await checkGrowth(context, outcome)
  const connections = await context.rig.upstream.connections()
  context.t.ok(connections <= MAX_CONNECTIONS, `${connections} connections to one upstream`)
}

/** Of all functions to one upstream. A function may have three thousand fetches open. */
const MAX_CONNECTIONS = 3_100

export const FLOOD_CASES: readonly IsolationCase[] = [...LOGS, ...CALLS]
