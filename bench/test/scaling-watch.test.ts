import type { HostInfo, HostState } from '@carpool/core'
import t from 'tap'
import { entriesOfDeparted, parseStarts } from '../src/scaling/scenarios/departed-entries.ts'
import type { Call } from '../src/lib/load/load-order.ts'
import { cpuCores, everServing, hostChanges, longestGapMs, mostServing, type FleetSample } from '../src/lib/watch/fleet-sample.ts'

const sample = (atMs: number, states: readonly HostState[], cpu: Readonly<Record<number, number>> = {}): FleetSample => ({
  atMs,
  hosts: states.map((state, id) => ({ id, state }) as HostInfo),
  inFlight: 0,
  queued: 0,
  machineBusyCores: 0,
  processes: Object.entries(cpu).map(([pid, cpuSeconds]) => ({ pid: Number(pid), cpuSeconds, residentBytes: 0 })),
})

t.test('only hosts that take calls count, and a change is one of their number', async (t) => {
  const samples = [
    sample(0, ['ready', 'standby']),
    sample(50, ['saturated', 'starting']),
    sample(100, ['saturated', 'ready', 'starting']),
    sample(150, ['saturated', 'ready', 'standby']),
    sample(210, ['draining', 'ready', 'standby']),
    sample(260, ['gone', 'ready', 'poisoned']),
  ]
  t.strictSame(hostChanges(samples), { changes: 2, shrinks: 1 })
  t.equal(mostServing(samples), 2)
  t.strictSame(everServing(samples), [0, 1])
  t.equal(longestGapMs(samples), 60)
  t.strictSame(hostChanges([]), { changes: 0, shrinks: 0 })
})

t.test('CPU is what the processes used between two samples, also of one that came or went', async (t) => {
  const samples = [sample(0, [], { 1: 5 }), sample(500, [], { 1: 5.25, 2: 9 }), sample(1000, [], { 2: 9.5 })]
  t.strictSame(cpuCores(samples), [
    { atMs: 500, value: 0.5 },
    { atMs: 1000, value: 1 },
  ])
})

t.test('entries of departed clients are those that began after the client had closed its connection', async (t) => {
  const call = (path: number, endedMs: number, failure?: string): Call => ({
    path,
    dueMs: 0,
    sentMs: 0,
    endedMs,
    status: failure === undefined ? 200 : 0,
    ...(failure !== undefined && { failure }),
  })
  const calls = [call(0, 100), call(1, 100, 'left'), call(2, 100, 'left'), call(3, 100, 'left')]
  const starts = parseStarts(['0 500', '1 90', '2 100', '3 130'])
  t.strictSame(entriesOfDeparted(calls, starts), [30])
  t.throws(() => parseStarts(['1 2 3']), /logged "1 2 3"/)
})
