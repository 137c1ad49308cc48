/** Group C7 of the list of attacks, second part: hosts that die, are brought down, or are replaced. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import t from 'tap'
import { ROOT } from '../support/command.ts'
import { call, type Answer } from './harness/call.ts'
import { deployScript } from './harness/control.ts'
import { FORM } from './harness/form.ts'
import type { CaseContext, IsolationCase } from './harness/isolation-case.ts'
import { checkRig, startRig } from './harness/rig.ts'
import { runCases } from './harness/run-cases.ts'
import { keepRow } from './harness/table.ts'
import { casesOf } from './support-b/cases-of.ts'
import { askAsOperator } from './support-b/control-answer.ts'
import { pathTo } from './support-b/fetch-attempts.ts'
import { comes, eventually } from './support-b/patience.ts'
import { startRawUpstream } from './support-b/raw-upstream.ts'

const lifecycle = casesOf('lifecycle', { verdict: 'P', billed: 'heartbeat', again: 'any' })

/** Begins so many calls, and kills their host when all of them are held by their upstream. */
async function killUnder(
  { t, rig, call }: CaseContext,
  { count, method, signal = 'SIGKILL' }: { count: number; method: string; signal?: NodeJS.Signals },
): ReturnType<NonNullable<IsolationCase['attack']>> {
  const state = { isKilled: false }
  const upstream = await startRawUpstream(t, (socket) => {
    if (state.isKilled) socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  })
  const calls = Array.from({ length: count }, () => call(pathTo(upstream.url), { method }))
  await comes(t, `${count} calls are under way`, upstream.untilRequests(count))
  state.isKilled = true
  process.kill((await rig.host()).pid, signal)
  return { answers: await Promise.all(calls) }
}

const WAITS = `
  const to = new URL(request.url).searchParams.get('to');
  if (to !== null) await fetch(to, { method: 'POST' });
  return new Response('done')`

const oneRecordEach: NonNullable<IsolationCase['check']> = ({ t }, { answers, records }) => {
  t.equal(records.length, answers.length, 'each call has one record')
}

const KILLED = [
  lifecycle('L06a', 'a host that is killed with a hundred calls that may have had effects', {
    handler: WAITS,
    expect: { status: 502, code: 'host-lost' },
    attack: (context) => killUnder(context, { count: 100, method: 'POST' }),
    check: oneRecordEach,
  }),
  lifecycle('L06b', 'a host that is killed with fifty calls that may be repeated', {
    handler: WAITS,
    expect: { status: 200, code: '' },
    attack: (context) => killUnder(context, { count: 50, method: 'GET' }),
    check: (context, attacked) => {
      void oneRecordEach(context, attacked)
      context.t.ok(
        attacked.records.every(({ attempts }) => Number(attempts) === 2),
        'which says that it was begun twice',
      )
    },
  }),
  ...(['SIGSEGV', 'SIGABRT'] as const).map((signal, index) =>
    lifecycle(`L08${'ab'[index]}`, `a host that ends by ${signal}, as faults in native code do`, {
      handler: WAITS,
      expect: { status: 502, code: 'host-lost' },
      attack: async (context) => {
        const { t, rig } = context
        const { pid } = await rig.host()
        t.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +0 /m, 'it may leave no core')
        const attacked = await killUnder(context, { count: 5, method: 'POST', signal })
        const folders = [rig.canary.dataDir, ROOT, dirname(rig.canary.dataDir)]
        const cores = folders.flatMap((folder) => readdirSync(folder).filter((file) => /^core(?:\.\d+)?$/.test(file)))
        t.strictSame(cores, [], 'and leaves none')
        return attacked
      },
      check: oneRecordEach,
    }),
  ),
]

/** Nothing ends this but the end of its process; each call takes a host down. */
const KILLER = `(function () { return { default: { fetch(request) {
  if (request.url.endsWith('/again')) return new Response('seen 0');
  let number = 3n;
  for (;;) number = number * number;
} } } })`

const REPEATED: IsolationCase[] = [
  lifecycle('L14', 'a function that takes down its host with each call, called again and again', {
    script: KILLER,
    isDeployed: true,
    limits: { cpuMs: 50, wallMs: 500, memoryMb: 64 },
    // A call that comes while the thread of the one before is stuck does not begin there.
    expect: { code: /^(?:cpu-exceeded|timeout|host-lost|isolate-lost)$/ },
    again: 'skipped',
    attack: async ({ t, rig, name, call }) => {
      const answers: Answer[] = []
      const hosts = new Set<number>()
      let last: Answer | undefined
      while (answers.length < 12 && last?.code !== 'function-disabled') {
        for (const { pid } of (await rig.server.info()).hosts) hosts.add(pid)
        last = await call()
        // On a busy machine a call may wait too long for the host that takes the place of the one before.
        if (last.code !== 'saturated') answers.push(last)
      }
      t.match(last, { status: 503, code: 'function-disabled' }, `${answers.length} calls`)
      t.match(last?.text, new RegExp(`carpool enable ${name}`), 'it says how it can be enabled')
      t.ok(hosts.size <= 10, `${hosts.size} hosts were started`)
      t.equal((await call()).code, 'function-disabled', 'it stays disabled')
      t.match(JSON.parse((await askAsOperator(rig.server, `/v1/functions/${name}`)).text), { state: 'disabled' })
      const enabled = await askAsOperator(rig.server, `/v1/functions/${name}/enable`, { method: 'POST' })
      t.ok(enabled.status < 300, enabled.text)
      // Its first call also starts its isolate, within half a second.
      await eventually(t, 'an operator enables it', async () => (await call('/again')).status === 200)
      // Those that are refused because it is disabled never came to it.
      return { answers: answers.filter(({ code }) => code !== 'function-disabled') }
    },
  }),
]

const STARTS: IsolationCase[] = [
  lifecycle('L16', 'many functions that are all called for the first time in a new host', {
    expect: { status: 200, code: '' },
    billed: 'full',
    attack: async ({ t, rig, name, call: callFirst }) => {
      const names = Array.from({ length: FORM.hasVariants ? 10 : 5 }, (_, index) => `${name}-${index}`)
      const code = `(function () { const table = Array.from({ length: 1e5 }, (_, i) => i); return { default: { fetch: () => new Response(String(table.length)) } } })`
      await Promise.all(names.map((one) => deployScript(rig.server, one, { code })))
      const before = await rig.host()
      process.kill(before.pid, 'SIGKILL')
      await eventually(t, 'there is a new host', async () => (await rig.host()).pid !== before.pid)
      const answers = await Promise.all(names.flatMap((one) => [0, 1, 2].map(() => call(`${rig.server.url}/${one}/`))))
      t.strictSame(new Set(answers.map(({ status, text }) => `${status} ${text}`)), new Set(['200 100000']))
      return { answers: [await callFirst()] }
    },
  }),
]

const ELSEWHERE = [
  lifecycle('L13', 'clocks that jump', {
    skip: 'All times are of monotonic clocks, and a test cannot set those of the machine.',
  }),
  lifecycle('L17', 'load of others, throttling, and machines of one core', {
    skip: 'packages/fleet/test/simulation runs the policies through these, in simulated time.',
  }),
  lifecycle('L18', 'a host that is not needed any more while calls are under way', {
    skip: 'test/scaling/second-host.test.ts does it, under load.',
  }),
  lifecycle('L19', 'an addon that does not fit', {
    skip: 'carpool doctor tries them; packages/server/test/doctor-checks.test.ts has what it says.',
  }),
]

t.test('lifecycle: hosts that are killed', (t) => runCases(t, [...KILLED, ...STARTS, ...ELSEWHERE]))
t.test('lifecycle: a function that kills hosts', (t) =>
  runCases(t, REPEATED, { flags: ['--quarantine-after', '2', '--disable-after', '3'] }),
)

t.test('L15 hosts that are replaced for their age, under load: OK', async (t) => {
  const rig = await startRig(t, { flags: ['--host-max-age-ms', '1500', '--max-hosts', '2'] })
  const seen = new Set<number>()
  const watched = rig.neighbour.watch(FORM.isFull ? FORM.probesPerSecond : 20)
  await eventually(t, 'three hosts have come and gone', async () => {
    for (const { pid } of (await rig.server.info()).hosts) seen.add(pid)
    return seen.size >= 4
  })
  const probe = await watched.stop()
  t.strictSame(probe.wrong, [], `${probe.calls} calls, none lost or wrong`)
  await checkRig(t, rig)
  keepRow({
    id: 'L15',
    group: 'lifecycle',
    title: 'hosts that are replaced for their age, under load',
    verdict: 'OK',
    answered: '200',
    billed: 'full',
    ...(rig.alone?.p99Ms !== undefined && { aloneP99Ms: rig.alone.p99Ms }),
    ...(probe.p99Ms !== undefined && { duringP99Ms: probe.p99Ms }),
  })
})
