import fc from 'fast-check'
import t from 'tap'
import { HostPool, isDueForRecycling, type HostPoolOptions } from '../src/pool/host-pool.ts'
import { FakeHost } from './support/fake-host.ts'

const DAY_MS = 86_400_000

interface Rig {
  readonly pool: HostPool
  readonly started: FakeHost[]
  readonly lost: Array<readonly [string, number]>
}

function rig(options: Partial<HostPoolOptions> = {}): Rig {
  const started: FakeHost[] = []
  const lost: Array<readonly [string, number]> = []
  const pool = new HostPool({
    minHosts: 1,
    maxHosts: 2,
    standbyHosts: 1,
    recycling: { maxAgeMs: DAY_MS, maxInvocations: 1_000 },
    canStartStandby: () => true,
    start: () => {
      const host = new FakeHost(started.length + 1)
      started.push(host)
      return host.asProcess
    },
    onServing: () => {},
    onLost: (how, respawnInMs) => lost.push([how, respawnInMs]),
    onStart: () => {},
    ...options,
  })
  return { pool, started, lost }
}

async function served(options: Partial<HostPoolOptions> = {}): Promise<Rig> {
  const made = rig(options)
  made.pool.fill()
  await allReady(made)
  await allReady(made)
  return made
}

async function allReady({ started }: Rig): Promise<void> {
  for (const host of started) await host.becomesReady()
}

function states({ started }: Rig): string[] {
  return started.map(({ state }) => state)
}

t.test('the first host comes first, then the standby', async (t) => {
  const made = rig()
  made.pool.fill()
  t.same(states(made), ['starting'])
  await allReady(made)
  t.same(states(made), ['ready', 'standby'])
})

t.test('a poisoned host gets nothing more, and the standby takes its place at once', async (t) => {
  const made = await served()
  made.pool.poison(made.started[0]!.asProcess)
  t.same(states(made), ['poisoned', 'ready', 'standby'])
  made.pool.poison(made.started[0]!.asProcess)
  t.equal(made.started.length, 3, 'once')
})

t.test('what stands by takes the place of a host that is silent, until that is back', async (t) => {
  const made = await served({ maxHosts: 1 })
  const [first, standby] = made.started as [FakeHost, FakeHost]
  first.isSilent = true
  made.pool.upkeep(0)
  t.same(states(made), ['ready', 'ready', 'standby'], 'the reserve is there for what takes its place as well')
  await allReady(made)
  made.pool.upkeep(0)
  t.same(states(made), ['ready', 'ready', 'standby'], 'once')
  standby.servesSinceMs = 5
  first.isSilent = false
  made.pool.upkeep(0)
  t.same(states(made), ['ready', 'standby', 'standby'])
  made.pool.upkeep(9_000)
  t.same(states(made), ['ready', 'standby', 'standby'], 'it may be silent again')
  made.pool.upkeep(10_000)
  t.same(states(made), ['ready', 'standby', 'draining'])
  made.pool.upkeep(11_000)
  t.same(states(made), ['ready', 'standby', 'draining'])
})

t.test('a host that is silent again and again has nothing started each time', async (t) => {
  const made = await served({ maxHosts: 1 })
  const [first] = made.started as [FakeHost]
  for (let nowMs = 0; nowMs < 60_000; nowMs += 1_000) {
    first.isSilent = true
    made.pool.upkeep(nowMs)
    await allReady(made)
    for (const [index, host] of made.started.entries()) host.servesSinceMs = index
    t.ok(made.started.some(({ state }) => state === 'standby'))
    first.isSilent = false
    made.pool.upkeep(nowMs + 500)
  }
  t.equal(made.started.length, 3)
})

t.test('when one host after the other becomes silent, not ever more are started', async (t) => {
  const made = await served({ maxHosts: 1 })
  for (let nowMs = 0; nowMs < 5_000; nowMs += 250) {
    for (const host of made.started) host.isSilent = host.takesCalls
    made.pool.upkeep(nowMs)
    await allReady(made)
  }
  t.ok(made.started.length <= 3, `${made.started.length} were started`)
})

t.test('a standby is started during silence only if the machine has room', async (t) => {
  let canStartStandby = true
  const made = await served({ canStartStandby: () => canStartStandby })
  canStartStandby = false
  made.started[0]!.isSilent = true
  made.pool.upkeep(0)
  t.same(states(made), ['ready', 'ready'])
  const none = await served({ standbyHosts: 0 })
  none.started[0]!.isSilent = true
  none.pool.upkeep(0)
  t.equal(none.started.length, 1)
})

t.test('a host that is silent for good is replaced by what took its place, and a new one stands by', async (t) => {
  const made = await served()
  made.started[0]!.isSilent = true
  made.pool.upkeep(0)
  made.pool.poison(made.started[0]!.asProcess)
  t.same(states(made), ['poisoned', 'ready', 'standby'])
})

t.test('no more take the place of silent hosts than there are', async (t) => {
  const made = await served({ minHosts: 2, standbyHosts: 2 })
  for (const host of made.started.slice(0, 2)) await host.becomesReady()
  made.started[0]!.isSilent = true
  for (let look = 0; look < 3; look++) made.pool.upkeep(0)
  t.same(states(made), ['ready', 'ready', 'ready', 'standby'])
})

t.test('no more than three poisoned hosts go on beside each other', async (t) => {
  const made = await served()
  for (let index = 0; index < 5; index++) {
    made.pool.poison(made.started[index]!.asProcess)
    await allReady(made)
  }
  t.same(
    made.started.map(({ calls }) => calls.includes('kill')),
    [true, true, false, false, false, false, false],
  )
})

t.test('a standby is started on a full machine when a host is poisoned, and not otherwise', async (t) => {
  let canStartStandby = true
  const made = await served({ canStartStandby: () => canStartStandby })
  canStartStandby = false
  made.started[1]!.isGone = true
  made.pool.gone(made.started[1]!.asProcess, 'SIGKILL')
  t.equal(made.started.length, 2)
  made.pool.poison(made.started[0]!.asProcess)
  await made.started[2]!.becomesReady()
  t.same(states(made), ['poisoned', 'gone', 'ready', 'standby'])
})

t.test('a host that has had its calls is replaced before it gets no more', async (t) => {
  const made = await served({ standbyHosts: 0 })
  const [old] = made.started as [FakeHost]
  old.callsSent = 1_000
  made.pool.upkeep(1_000)
  t.same(states(made), ['ready', 'starting'])
  made.pool.upkeep(2_000)
  t.equal(made.started.length, 2, 'one after the other')
  await made.started[1]!.becomesReady()
  made.pool.upkeep(3_000)
  t.same(states(made), ['draining', 'ready'])
  made.pool.upkeep(4_000)
  t.ok(old.calls.includes('stop'))
})

t.test('whichever of the two dies meanwhile, one serves', async (t) => {
  for (const dies of ['old', 'fresh'] as const) {
    const made = await served({ standbyHosts: 0 })
    const [old] = made.started as [FakeHost]
    old.callsSent = 1_000
    made.pool.upkeep(1_000)
    const host = made.started[dies === 'old' ? 0 : 1]!
    host.isGone = true
    host.servedMs = 5_000
    made.pool.gone(host.asProcess, 'SIGKILL')
    made.pool.upkeep(2_000)
    await allReady(made)
    for (const nowMs of [3_000, 4_000, 5_000]) {
      made.pool.upkeep(nowMs)
      await allReady(made)
    }
    t.equal(made.pool.ready.length, 1, dies)
    t.ok(made.pool.ready[0]!.callsSent < 1_000, `${dies}: it is not the one that had its calls`)
  }
})

t.test('a poisoned standby leaves, and another is started', async (t) => {
  const made = await served()
  made.pool.poison(made.started[1]!.asProcess)
  await allReady(made)
  t.same(states(made), ['ready', 'poisoned', 'standby'])
})

t.test('starts that fail one after the other are spaced, and one that served is none of them', async (t) => {
  const made = await served({ standbyHosts: 0 })
  const [first] = made.started as [FakeHost]
  first.isGone = true
  first.servedMs = 5_000
  made.pool.gone(first.asProcess, 'SIGSEGV')
  t.same(made.lost, [['SIGSEGV', 0]])
  for (let failure = 0; failure < 3; failure++) {
    const host = made.started.at(-1)!
    host.isGone = true
    made.pool.gone(host.asProcess, 'exit code 1')
  }
  const waits = made.lost.slice(1).map(([, respawnInMs]) => respawnInMs)
  t.ok(waits.at(-1)! > 0, String(waits))
  t.equal(made.pool.failedStarts.last, 'exit code 1')
  t.equal(made.pool.missing, 1)
  made.pool.close()
})

t.test('hosts are due at their age or count, up to a fifth earlier; never without a limit', async (t) => {
  const policy = { maxAgeMs: 1_000, maxInvocations: 100 }
  t.notOk(isDueForRecycling({ ageMs: 999, invocations: 99, jitter: 0 }, policy))
  t.ok(isDueForRecycling({ ageMs: 1_000, invocations: 0, jitter: 0 }, policy))
  t.ok(isDueForRecycling({ ageMs: 0, invocations: 100, jitter: 0 }, policy))
  t.ok(isDueForRecycling({ ageMs: 800, invocations: 0, jitter: 1 }, policy))
  fc.assert(
    fc.property(fc.nat(), fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (ageMs, invocations, jitter) => {
      return !isDueForRecycling({ ageMs, invocations, jitter }, { maxAgeMs: 0, maxInvocations: 0 })
    }),
  )
})
