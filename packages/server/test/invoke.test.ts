import {
  Cancellation,
  CarpoolError,
  NO_USAGE,
  resolveLimits,
  type HttpRequest,
  type InvocationResult,
  type Revision,
} from '@carpool/core'
import t from 'tap'
import { runInHost } from '../src/run-in-host.ts'

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
  readonly hosts: number[]
}

/** Runs an invocation whose attempts end so, one after the other; an error is that there is no place. */
async function ran(
  ends: ReadonlyArray<InvocationResult | CarpoolError | (() => InvocationResult)>,
  { method = 'GET', wallMs = 60_000, cancellation = new Cancellation() } = {},
): Promise<Ran> {
  const limits = resolveLimits({ wallMs })
  const revision: Revision = {
    id: 'r',
    functionName: 'f',
    owner: 'o',
    form: 'fetch',
    createdAt: '',
    codeBytes: 1,
    codeHash: '',
    limits,
    env: {},
  }
  const hosts: number[] = []
  let attempt = 0
  const fleet = {
    place: () => {
      const end = ends[attempt++]!
      if (end instanceof CarpoolError) throw end
      return { host: attempt, invoke: () => Promise.resolve(typeof end === 'function' ? end() : end) }
    },
  }
  const request = { method, url: 'http://x/', headers: [], body: new Uint8Array() } as unknown as HttpRequest
  const metering = { placed: (host: number) => void hosts.push(host) }
  const result = await runInHost(fleet, { revision, id: 'i', request, cancellation, metering })
  return { result, hosts }
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
  const cancellation = new Cancellation()
  const leaves = (): InvocationResult => {
    cancellation.cancel()
    return LOST
  }
  t.same((await ran([leaves, OK], { cancellation })).hosts, [1])
  const takesLong = (): InvocationResult => {
    const untilMs = performance.now() + 15
    while (performance.now() < untilMs);
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
