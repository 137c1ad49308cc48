import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runInThisContext } from 'node:vm'
import type { HostState, InvocationRecord } from '@carpool/core'
import { openLedger } from '@carpool/ledger'
import t from 'tap'
import { agreementOf, clientEnd } from '../src/containment/agreement.ts'
import { fateVerdict, offenderFigures } from '../src/containment/fate.ts'
import { handlerBundle, neighbourBundle } from '../src/containment/functions.ts'
import { harmedHosts, hostCpuMs, hostPids } from '../src/containment/harm.ts'
import { killDuring, killNow } from '../src/containment/kills.ts'
import { readLedger, type LedgerRecord } from '../src/containment/ledger.ts'
import { survivors } from '../src/containment/left-processes.ts'
import { levelVerdicts } from '../src/containment/level-verdicts.ts'
import { lossFigures } from '../src/containment/loss-figures.ts'
import { neighbourFigures, neighbourVerdicts } from '../src/containment/neighbour.ts'
import { openDescriptors, threadCount, type Level } from '../src/containment/process-level.ts'
import { recordAt } from '../src/ledger/records.ts'
import type { Call } from '../src/lib/load/load-order.ts'
import type { FleetSample } from '../src/lib/watch/fleet-sample.ts'

type Hosts = Readonly<Record<number, HostState>>

const hostsAt = (...moments: readonly Hosts[]): Array<Pick<FleetSample, 'hosts'>> =>
  moments.map((states) => ({
    hosts: Object.entries(states).map(([id, state]) => ({ id: Number(id), state })) as unknown as FleetSample['hosts'],
  }))

t.test('hosts are harmed that are poisoned, or gone without having drained', async (t) => {
  const harmed = (...moments: readonly Hosts[]): number[] => harmedHosts(hostsAt(...moments))
  t.strictSame(harmed({ 1: 'ready', 2: 'standby' }, { 1: 'poisoned', 2: 'ready' }, { 2: 'ready' }), [1])
  t.strictSame(harmed({ 1: 'ready', 2: 'saturated' }, { 2: 'saturated' }, {}), [1, 2])
  t.strictSame(harmed({ 1: 'ready' }, { 1: 'gone' }), [1])
  t.strictSame(harmed({ 1: 'ready' }, { 1: 'draining' }, {}), [], 'it drained')
  t.strictSame(harmed({ 1: 'standby', 2: 'starting' }, {}), [], 'nobody was there')
})

t.test('CPU of hosts counts from the first sample, with processes that came and went', async (t) => {
  const at = (cpu: Readonly<Record<number, number>>): Pick<FleetSample, 'processes'> => ({
    processes: Object.entries(cpu).map(([pid, cpuSeconds]) => ({ pid: Number(pid), cpuSeconds, residentBytes: 0 })),
  })
  const samples = [at({ 1: 5 }), at({ 1: 5.5, 2: 0.25 }), at({ 2: 1 })]
  t.equal(hostCpuMs(samples), 1500)
  t.strictSame([...hostPids(samples)], [1, 2])
  t.equal(hostCpuMs([]), 0)
})

const call = (given: Partial<Call>): Call => ({ path: 0, dueMs: 0, sentMs: 0, endedMs: 0, status: 0, ...given })
const record = (given: Partial<LedgerRecord>): LedgerRecord => ({
  id: '',
  functionName: 'f',
  end: 'ok',
  startedAtMs: 0,
  cpuMs: 0,
  attempts: 1,
  ...given,
})

t.test('ends have the words of the ledger', async (t) => {
  t.equal(clientEnd({ status: 200 }), 'ok')
  t.equal(clientEnd({ status: 502, code: 'host-lost' }), 'host-lost')
  t.equal(clientEnd({ status: 0, failure: 'left' }), 'left')
  t.equal(clientEnd({ status: 200, failure: 'wrong answer' }), 'wrong answer')
  t.equal(clientEnd({ status: 500 }), '500', "a function's own")
})

t.test('clients and ledger agree call by call, and each way not to is found', async (t) => {
  const calls = [
    { functionName: 'f', id: 'a', end: 'ok' },
    { functionName: 'f', id: 'b', end: 'timeout' },
    { functionName: 'f', end: 'left' },
    { functionName: 'g', end: 'left' },
  ]
  const records = [record({ id: 'a' }), record({ id: 'b', end: 'timeout' }), record({ id: 'c', end: 'canceled' })]
  const found = (more: readonly LedgerRecord[], less: string = ''): object => {
    const kept = records.filter(({ id }) => id !== less)
    const { missing, doubled, different, surplus } = agreementOf(calls, [...kept, ...more])
    return { missing, doubled, different, surplus }
  }
  const good = { missing: 0, doubled: 0, different: 0, surplus: 0 }
  t.strictSame(found([]), good)
  t.match(agreementOf(calls, records), { calls: 4, records: 3, unanswered: 2, unclaimed: 1 })
  t.strictSame(found([record({ id: 'd', functionName: 'g', end: 'canceled' })]), good, 'a call that left has one at most')
  t.strictSame(found([record({ id: 'd', functionName: 'f', end: 'canceled' })]), { ...good, surplus: 1 })
  t.strictSame(found([record({ id: 'c', end: 'canceled' })]), { ...good, doubled: 1, surplus: 1 })
  t.strictSame(found([], 'a'), { ...good, missing: 1 })
  t.strictSame(found([record({ id: 'b', end: 'ok' })], 'b'), { ...good, different: 1 })
  t.strictSame(found([record({ id: 'b', functionName: 'g', end: 'timeout' })], 'b'), { ...good, different: 1 })
  t.strictSame(agreementOf(calls, records).counts, [
    { functionName: 'f', end: 'canceled', calls: 0, records: 1 },
    { functionName: 'f', end: 'left', calls: 1, records: 0 },
    { functionName: 'f', end: 'ok', calls: 1, records: 1 },
    { functionName: 'f', end: 'timeout', calls: 1, records: 1 },
    { functionName: 'g', end: 'left', calls: 1, records: 0 },
  ])
})

t.test('records are read from the file, with the reason of a refusal as their end', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'carpool-bench-test-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const endMs = Date.now()
  const written: InvocationRecord[] = [
    { ...recordAt(0, 2, endMs), outcome: 'host-lost', attempts: 2 },
    { ...recordAt(1, 2, endMs), outcome: 'refused', error: 'saturated' },
  ]
  const ledger = await openLedger(dataDir, { retentionDays: 3650, onProblem: ({ message }) => t.fail(message) })
  for (const one of written) await promisify(ledger.write.bind(ledger))(one, 1000)
  await ledger.close()
  const [lost, refused] = written
  t.strictSame(readLedger(dataDir), [
    {
      id: lost?.id,
      functionName: lost?.functionName,
      end: 'host-lost',
      startedAtMs: lost?.startedAtMs,
      cpuMs: (lost?.cpuUs ?? 0) / 1000,
      attempts: 2,
    },
    {
      id: refused?.id,
      functionName: refused?.functionName,
      end: 'saturated',
      startedAtMs: refused?.startedAtMs,
      cpuMs: (refused?.cpuUs ?? 0) / 1000,
      attempts: refused?.attempts,
    },
  ])
})

t.test('a killed process is gone when it is said to be', async (t) => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()', 'host/src/process.ts'], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  })
  await once(child, 'spawn')
  const ended = once(child, 'exit')
  t.strictSame(survivors([process.pid, child.pid ?? 0]), [child.pid], 'it passes for a host')
  const { pid, atMs, goneMs } = await killNow(child.pid ?? 0)
  t.equal(pid, child.pid)
  t.ok(goneMs >= atMs)
  t.strictSame(survivors([pid]), [])
  t.strictSame(await ended, [null, 'SIGKILL'])
  await t.rejects(killNow(pid), /ESRCH/)
})

t.test('a call was in flight at a kill if it was sent before the end and not answered before the signal', async (t) => {
  const kill = { pid: 1, atMs: 100, goneMs: 120 }
  t.equal(killDuring({ sentMs: 90, endedMs: 130 }, [kill]), kill)
  t.equal(killDuring({ sentMs: 115, endedMs: 130 }, [kill]), kill, 'its socket took it')
  t.equal(killDuring({ sentMs: 90, endedMs: 99 }, [kill]), undefined)
  t.equal(killDuring({ sentMs: 150, endedMs: 160 }, [kill]), undefined)
})

t.test('lost calls are explained by a kill, and nothing else is', async (t) => {
  const lost = { status: 502, code: 'host-lost' }
  const calls = [
    call({ id: 'a', status: 200, endedMs: 40 }),
    call({ id: 'b', sentMs: 90, endedMs: 150, ...lost }),
    call({ id: 'c', sentMs: 110, endedMs: 140, ...lost }),
    call({ id: 'd', sentMs: 300, endedMs: 320, ...lost }),
    call({ id: 'e', sentMs: 95, endedMs: 130, status: 503, code: 'saturated' }),
  ]
  const figures = lossFigures(
    'POST',
    calls,
    [{ pid: 1, atMs: 100, goneMs: 120 }],
    [record({ id: 'a', attempts: 2 }), record({ id: 'b' })],
  )
  t.match(figures, { failed: 4, lost: 3, lostSentBefore: 1, unexplained: 2, slowestAnswerMs: 50, again: 1, slowestAgainMs: 40 })
})

t.test('an offender is disabled, or harms nobody and is ended at its limits', async (t) => {
  const ended = (code: string, endedMs = 0): Call => call({ status: 502, code, endedMs })
  const refused = call({ status: 503, code: 'function-disabled', endedMs: 900 })
  const isMet = (
    calls: readonly Call[],
    { disabledAtMs, harmed = 0, isAlone = true }: { disabledAtMs?: number; harmed?: number; isAlone?: boolean },
  ) =>
    fateVerdict(offenderFigures('it', calls, disabledAtMs === undefined ? 'active' : 'disabled', disabledAtMs), {
      claim: 'killers, it',
      harmed,
      isAlone,
      isQuick: false,
    }).isMet
  t.ok(isMet([ended('host-lost', 100), refused], { disabledAtMs: 150, harmed: 4 }))
  t.ok(isMet([ended('memory-exceeded'), ended('cpu-exceeded')], {}))
  t.notOk(isMet([ended('memory-exceeded')], { harmed: 1 }), 'the answer was clean, and the host was harmed')
  t.notOk(isMet([ended('memory-exceeded'), ended('host-lost')], {}))
  t.ok(isMet([ended('host-lost', 100), ended('memory-exceeded', 200)], { harmed: 3, isAlone: false }), 'others harmed them')
  t.notOk(isMet([ended('memory-exceeded', 100), ended('host-lost', 200)], { harmed: 3, isAlone: false }))
  t.notOk(isMet([refused], { harmed: 3, isAlone: false }), 'no call of it ran')
  t.equal(offenderFigures('it', [ended('host-lost', 100), refused], 'disabled', 150).disabledAfterMs, 50)
})

t.test("a neighbour's calls are good, lost or wrong", async (t) => {
  const good = (endedMs: number): Call => call({ status: 200, endedMs })
  const figures = neighbourFigures({
    calls: [
      good(10),
      good(20),
      call({ status: 200, failure: 'wrong answer', endedMs: 30 }),
      call({ status: 503, code: 'saturated' }),
    ],
    latestStartMs: 1,
  })
  t.match(figures, { calls: 4, lost: 1, wrong: 1, maxMs: 30 })
  const p99 = (ms: number) => neighbourFigures({ calls: [good(ms)], latestStartMs: 0 })
  const reached = (aloneMs: number, besideMs: number): boolean[] =>
    neighbourVerdicts('c', p99(aloneMs), p99(besideMs)).map(({ isMet }) => isMet)
  t.strictSame(reached(10, 35), [true, true, true])
  t.strictSame(reached(10, 36), [true, true, false])
  t.strictSame(reached(100, 200), [true, true, true])
  t.strictSame(
    neighbourVerdicts('c', figures, figures).map(({ isMet }) => isMet),
    [false, false, true],
  )
})

t.test('what a server holds must be back where it was', async (t) => {
  const mebibyte = 2 ** 20
  const level = (descriptors: number, threads: number, megabytes: number, processes = 5): Level => {
    const held = { pid: 1, residentBytes: megabytes * mebibyte, descriptors, threads }
    return { server: held, hosts: [held, held], processes, serverHeapBytes: 0 }
  }
  const before = level(40, 14, 100)
  const failed = (after: Level): string[] =>
    levelVerdicts(before, after)
      .filter(({ isMet }) => !isMet)
      .map(({ claim }) => claim)
  t.strictSame(failed(level(42, 14, 157)), [])
  t.strictSame(failed(level(43, 14, 100)), ['soak: descriptors of the server'])
  t.strictSame(failed(level(40, 15, 100)), ['soak: threads of the server'])
  t.strictSame(failed(level(40, 14, 158)), ['soak: memory of the server', 'soak: memory of a host, on the mean'])
  t.strictSame(failed(level(40, 14, 100, 6)), ['soak: processes'])
  t.ok(failed({ ...before, hosts: [] }).length > 0, 'no host that serves')
})

t.test('descriptors and threads of a process are counted', { skip: process.platform !== 'linux' }, async (t) => {
  const before = openDescriptors(process.pid)
  const descriptor = openSync('/dev/null', 'r')
  t.equal(openDescriptors(process.pid), before + 1)
  closeSync(descriptor)
  t.ok(threadCount(process.pid) > 1)
  t.ok(Number.isNaN(openDescriptors(2 ** 22 + 1)) && Number.isNaN(threadCount(2 ** 22 + 1)), 'no such process')
})

interface Bundled {
  readonly default: { fetch(request: Request): Promise<Response> }
}

t.test('the functions are bundles, and the answer of the neighbour is that of its number', async (t) => {
  const ask = async (bundle: string, query = ''): Promise<string> => {
    const { default: handler } = (runInThisContext(bundle) as () => Bundled)()
    return (await handler.fetch(new Request(`http://localhost/${query}`))).text()
  }
  t.equal(await ask(neighbourBundle(), '?wait=1&iterations=20&number=17'), '340')
  t.equal(await ask(neighbourBundle(), '?wait=0&iterations=20&number=0'), '0')
  t.equal(await ask(handlerBundle('return new Response(request.method)')), 'GET')
})
