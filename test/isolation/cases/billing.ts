/** Group C8 of the list of attacks, first part: what is measured is what was used. */
import type { IsolationCase } from '../harness/isolation-case.ts'
import { BURN, burnAlone, cpuUs, median, TURNS, usageOf } from '../support-b/burn.ts'
import { casesOf } from '../support-b/cases-of.ts'
import { CLOCK_TICK_SECONDS, hostCpuSeconds, processCpuSeconds } from '../support-b/host-cpu.ts'
import { pathTo } from '../support-b/fetch-attempts.ts'
import { comes, eventually } from '../support-b/patience.ts'
import { startRawUpstream } from '../support-b/raw-upstream.ts'

const billing = casesOf('billing', { verdict: 'OK', scope: BURN, limits: { cpuMs: 10_000 }, isRepeatable: false })

const MEASURED = [
  billing('B01', 'calls of known work, one after the other', {
    handler: 'burn(turnsOf(request)); return new Response("burnt")',
    attack: async (context) => {
      const rows = await burnAlone(
        context,
        Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? TURNS : 8 * TURNS)),
      )
      const used = (from: number): number => median(rows.filter((_, index) => index % 2 === from).map(cpuUs))
      const ratio = used(1) / used(0)
      context.t.ok(ratio > 4 && ratio < 16, `eight times the work is billed ${ratio.toFixed(2)} times`)
      return { answers: [await context.call('/?turns=1')] }
    },
  }),
  billing('B02', 'a long run, whose figures are read again and again', {
    handler: 'burn(turnsOf(request)); return new Response("burnt")',
    attack: async ({ t, rig, name, call }) => {
      const state = { isDone: false }
      const running = call(`/?turns=${20 * TURNS}`).finally(() => (state.isDone = true))
      const seen: number[] = []
      while (!state.isDone) seen.push((await usageOf(rig.server, name))?.cpuUs ?? 0)
      const answer = await running
      seen.push((await eventually(t, 'its figures are there', () => usageOf(rig.server, name)))?.cpuUs ?? 0)
      t.strictSame(
        seen,
        seen.toSorted((a, b) => a - b),
        `${seen.length} readings, none below the one before`,
      )
      return { answers: [answer] }
    },
  }),
  billing('B03', 'forty calls at once in one isolate, each with work of its own between ten waits', {
    handler: `
      const turns = turnsOf(request);
      for (let wait = 0; wait < 10; wait++) { burn(turns); await new Promise((done) => setTimeout(done, 1)) }
      return new Response('burnt')`,
    attack: async ({ call }) => ({
      answers: await Promise.all(Array.from({ length: 40 }, (_, index) => call(`/?turns=${index % 2 === 0 ? 50_000 : 500_000}`))),
    }),
    check: ({ t }, { answers, records }) => {
      const used = new Map(records.map((record) => [String(record['id']), cpuUs(record)]))
      const of = (parity: number): number[] =>
        answers.filter((_, index) => index % 2 === parity).map(({ id }) => used.get(id) ?? 0)
      const [small, large] = [of(0), of(1)]
      t.ok(median(large) > 3 * median(small), `ten times the work: ${median(large)} µs and ${median(small)} µs`)
      t.ok(Math.min(...large) > median(small), 'nobody pays for another')
    },
  }),
  billing('B16', 'all that hosts used, against what is on bills', {
    handler: 'burn(turnsOf(request)); await 0; burn(turnsOf(request)); return new Response("burnt")',
    attack: async ({ t, rig, call }) => {
      // Hosts tell four times a second where their time went: what was billed before counts once they have told of that, too.
      const before = await eventually(t, 'the hosts have told what they used before', async () => {
        const parts = await hostCpuSeconds(rig.server)
        return (parts['unattributed'] ?? 0) >= -0.01 && parts
      })
      const { pid } = await rig.host()
      const usedBefore = processCpuSeconds(pid)
      const answers = []
      for (let count = 0; count < 10; count++) answers.push(await call(`/?turns=${2 * TURNS}`))
      const billedSeconds = (parts: Readonly<Record<string, number>>): number =>
        (parts['invocations'] ?? 0) + (parts['starts'] ?? 0) + (parts['background'] ?? 0)
      const after = await eventually(t, 'the hosts have told', async () => {
        const parts = await hostCpuSeconds(rig.server)
        return (parts['unattributed'] ?? 0) >= -0.01 && billedSeconds(parts) > billedSeconds(before ?? {}) && parts
      })
      const used = processCpuSeconds(pid) - usedBefore
      const billed = billedSeconds(after ?? {}) - billedSeconds(before ?? {})
      t.ok(billed > 0 && billed < used + CLOCK_TICK_SECONDS, `${billed.toFixed(3)} s are billed of ${used.toFixed(3)} s in all`)
      const nobodys = (after?.['unattributed'] ?? 0) - (before?.['unattributed'] ?? 0)
      t.ok(nobodys < 0.2 * billed, `${nobodys.toFixed(3)} s of isolates are nobody's`)
      return { answers }
    },
  }),
]

const ENDED = [
  billing('B06a', 'a call that is ended at its CPU limit', {
    verdict: 'K',
    billed: 'cap',
    limits: { cpuMs: 60 },
    handler: 'for (;;);',
    expect: { status: 502, code: 'cpu-exceeded' },
  }),
  billing('B06b', 'a call that is ended at its wall limit while it works', {
    verdict: 'K',
    billed: 'cap',
    limits: { cpuMs: 5_000, wallMs: 500 },
    handler: 'for (;;);',
    expect: { status: 504, code: 'timeout' },
  }),
  billing('B06c', 'a call that is ended at its memory limit', {
    verdict: 'K',
    limits: { cpuMs: 5_000, memoryMb: 32 },
    handler: 'const kept = []; for (;;) kept.push(new Array(1e4).fill(1.5))',
    expect: { status: 502, code: 'memory-exceeded' },
    check: ({ t }, { records }) => {
      for (const { memory_peak_kb } of records) t.ok(Number(memory_peak_kb) >= 32 * 1024, `peak ${memory_peak_kb} KiB`)
    },
  }),
  billing('B18', 'a call that only waits until its wall limit', {
    verdict: 'E',
    limits: { wallMs: 1_000 },
    handler: 'await new Promise((done) => setTimeout(done, 60_000))',
    expect: { status: 504, code: 'timeout' },
    check: ({ t }, { records }) => {
      for (const record of records) {
        // The two ends are read from two clocks.
        t.ok(Number(record['wall_us']) >= 999_000, `${record['wall_us']} µs of time`)
        t.ok(cpuUs(record) < 150_000, `${cpuUs(record)} µs of CPU`)
      }
    },
  }),
  billing('B07', 'a host that is killed with a call that has worked and waits', {
    verdict: 'P',
    billed: 'heartbeat',
    handler: `
      burn(turnsOf(request)); setInterval(() => burn(${TURNS}), 20);
      await fetch(new URL(request.url).searchParams.get('to'))`,
    expect: { status: 502, code: 'host-lost' },
    again: 'any',
    attack: async ({ t, rig, call }) => {
      const upstream = await startRawUpstream(t, () => {})
      const { unattributed: before = 0 } = await hostCpuSeconds(rig.server)
      const answer = call(`${pathTo(upstream.url)}&turns=${5 * TURNS}`, { method: 'POST' })
      await comes(t, 'it waits', upstream.untilRequests(1))
      // Far more than what the neighbour's calls have under way: its host has reported of the call.
      await eventually(t, 'a tenth of a second of CPU is reported', async () => {
        const { unattributed = 0 } = await hostCpuSeconds(rig.server)
        return unattributed > before + 0.1
      })
      process.kill((await rig.host()).pid, 'SIGKILL')
      return { answers: [await answer] }
    },
    check: ({ t }, { records }) => {
      t.equal(records.length, 1, 'one record')
      t.match(records[0], { outcome: 'host-lost', attempts: 1 })
      t.ok(
        records.every((record) => cpuUs(record) > 5_000),
        `with what was last seen: ${records.map(cpuUs).join()} µs`,
      )
    },
  }),
]

const ELSEWHERE = [
  billing('B09', 'a ledger whose last write was cut off', {
    skip: 'packages/ledger/test/crash does it; L10 and L11 end and starve whole servers.',
  }),
  billing('B15', 'clocks that jump', { skip: 'All times are of monotonic clocks, and a test cannot set those of the machine.' }),
]

export const BILLING_CASES: readonly IsolationCase[] = [...MEASURED, ...ENDED, ...ELSEWHERE]
