import { Admission } from '@carpool/admission'
import {
  CarpoolError,
  NO_USAGE,
  type Call,
  type FinishedInvocation,
  type InvocationRecord,
  type InvocationResult,
} from '@carpool/core'
import { Meter } from '@carpool/ledger'
import t from 'tap'
import { Hops } from '../src/hops.ts'
import { CallPipeline } from '../src/invoke.ts'
import { routedCall } from '../../../test/support/call.ts'

const LOST: InvocationResult = {
  outcome: 'host-lost',
  start: 'warm',
  usage: { ...NO_USAGE, cpuUs: 30, attempts: 0 },
  detail: 'lost',
}
const OK: InvocationResult = {
  outcome: 'ok',
  start: 'isolate-cold',
  usage: { ...NO_USAGE, cpuUs: 12, egressBytesIn: 5, memoryPeakKb: 9, attempts: 1 },
  response: { status: 200, headers: [], body: new Uint8Array() },
}

interface Ran {
  readonly result: InvocationResult
  readonly record: InvocationRecord
  readonly hosts: number[]
}

/** The host gives the call back after so long without having begun it. */
interface Unbegun {
  readonly unbegunAfterMs: number
}

const UNBEGUN: Unbegun = { unbegunAfterMs: 0 }

type End = InvocationResult | CarpoolError | Unbegun | ((call: Call) => InvocationResult)

function pass(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

/** Runs an invocation whose attempts end so, one after the other; an error is that there is no place. */
async function ran(ends: readonly End[], { method = 'GET', wallMs = 60_000 } = {}): Promise<Ran> {
  const hosts: number[] = []
  let attempt = 0
  const call = routedCall('f', { method, limits: { wallMs }, cameMs: performance.now() })
  const { revision } = call
  const fleet = {
    place: (placed: Call): void => {
      const end = ends[attempt++]!
      if (end instanceof CarpoolError) return pipeline.refused(placed, end)
      placed.host = attempt
      hosts.push(attempt)
      pipeline.placed(placed)
      if ('unbegunAfterMs' in end) {
        pass(end.unbegunAfterMs)
        pipeline.unplaced(placed)
        return fleet.place(placed)
      }
      pipeline.answered(placed, typeof end === 'function' ? end(placed) : end)
    },
  }
  const admission = new Admission({ maxInFlight: 1 })
  const meter = new Meter({
    write: (_record, _us, written) => written(),
    hold: () => {},
    hasRun: () => true,
    clock: () => performance.now(),
  })
  const pipeline = new CallPipeline({
    registry: { route: () => revision, checkEnabled: () => {} },
    hops: new Hops({ maxHops: 3, maxNestedCalls: 10 }),
    admission,
    meter,
    functionLogger: { failed: () => {} },
  })
  pipeline.useFleet(fleet)
  pipeline.invoke(call)
  const ended = await call.ended.catch((cause: unknown) => cause)
  t.equal(admission.inFlight, 0, 'its place among those in flight was given back')
  t.equal(meter.underWay, 0, 'it has its record')
  if (ended instanceof Error) throw ended
  const { result, record } = ended as FinishedInvocation
  return { result, record, hosts }
}

t.test('a safe method begins again in another host, once, and its record has what both used', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const { result, hosts } = await ran([LOST, OK], { method })
    t.same(hosts, [1, 2])
    t.equal(result.outcome, 'ok')
    t.match(result.usage, { cpuUs: 42, egressBytesIn: 5, memoryPeakKb: 9, attempts: 2 })
  }
  const { result, hosts } = await ran([LOST, LOST, OK])
  t.same(hosts, [1, 2], 'once')
  t.equal(result.outcome, 'host-lost')
})

t.test('what never began begins in another host, whatever its method', async (t) => {
  for (const method of ['GET', 'POST']) {
    const { result, hosts } = await ran([{ ...LOST, outcome: 'isolate-lost' }, OK], { method })
    t.same([result.outcome, hosts], ['ok', [1, 2]], method)
    t.equal(result.usage.attempts, 1)
  }
})

t.test('what may have had effects does not', async (t) => {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'get']) {
    const { result, hosts } = await ran([LOST, OK], { method })
    t.same([result.outcome, hosts], ['host-lost', [1]], method)
  }
})

t.test('neither does what may have brought its host down, what its client has left, and what is out of time', async (t) => {
  t.same((await ran([{ ...LOST, isSuspect: true }, OK])).hosts, [1])
  const leaves = (call: Call): InvocationResult => {
    call.cancel()
    return LOST
  }
  t.same((await ran([leaves, OK])).hosts, [1])
  const takesLong = (): InvocationResult => {
    pass(15)
    return LOST
  }
  t.same((await ran([takesLong, OK], { wallMs: 10 })).hosts, [1])
})

t.test('other ends are final', async (t) => {
  for (const outcome of ['isolate-lost', 'cpu-exceeded', 'timeout', 'exception'] as const) {
    const usage = { ...LOST.usage, attempts: outcome === 'isolate-lost' ? 1 : 0 }
    t.same((await ran([{ ...LOST, outcome, usage }, OK])).hosts, [1], outcome)
  }
})

t.test('if there is no other place, it was lost with its host; if there is none at first, that is told', async (t) => {
  const full = new CarpoolError('saturated', 'No host has room for the call.')
  const { result } = await ran([LOST, full])
  t.strictSame(result, LOST)
  await t.rejects(ran([full, OK]), { code: 'saturated' })
})

t.test('what its host gives back unbegun has waited, and has its one more try', async (t) => {
  const { record, hosts } = await ran([UNBEGUN, LOST, UNBEGUN, OK])
  t.same(hosts, [1, 2, 3, 4])
  t.match(record, { outcome: 'ok', host: 4, attempts: 2 })
  const full = new CarpoolError('saturated', 'No host has room for the call.')
  const call = await ran([LOST, UNBEGUN, full])
  t.same(call.result, LOST, 'it ran once')
})

t.test('the wall limit counts from when a host takes it that begins it', async (t) => {
  const { hosts } = await ran([{ unbegunAfterMs: 15 }, LOST, OK], { wallMs: 10 })
  t.same(hosts, [1, 2, 3])
})
