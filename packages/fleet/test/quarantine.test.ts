import t, { type Test } from 'tap'
import { Quarantine } from '../src/health/quarantine.ts'
import { FakeHost } from './support/fake-host.ts'

function quarantineOf(maxHosts: number): { quarantine: Quarantine; started: FakeHost[]; failures: { left: number } } {
  const started: FakeHost[] = []
  const failures = { left: 0 }
  const quarantine = new Quarantine({
    maxHosts,
    start: () => {
      if (failures.left-- > 0) throw new Error('no descriptors left')
      const host = new FakeHost(started.length + 1)
      started.push(host)
      return host.asProcess
    },
  })
  return { quarantine, started, failures }
}

function called(quarantine: Quarantine, name: string): number[] {
  return quarantine.readyFor(name).map(({ id }) => id)
}

t.test('each function gets a process of its own, which takes calls once it is ready', async (t: Test) => {
  const { quarantine, started } = quarantineOf(4)
  t.same(called(quarantine, 'a'), [], 'it is on its way')
  t.same(called(quarantine, 'b'), [])
  t.equal(started.length, 2)
  t.ok(started.every(({ role }) => role === 'quarantine'))
  await Promise.all(started.map((host) => host.becomesReady()))
  t.same(called(quarantine, 'a'), [1])
  t.same(called(quarantine, 'b'), [2])
  t.equal(quarantine.functionIn(started[1]!.asProcess), 'b')
})

t.test('when there are more functions than processes, they share those with the fewest', async (t) => {
  const { quarantine, started } = quarantineOf(2)
  for (const name of ['a', 'b', 'c', 'd']) called(quarantine, name)
  await Promise.all(started.map((host) => host.becomesReady()))
  t.equal(started.length, 2)
  t.same(
    ['a', 'b', 'c', 'd'].map((name) => called(quarantine, name)),
    [[1], [2], [1], [2]],
  )
})

t.test('a process that is lost, poisoned or told to end is replaced by the next call', async (t) => {
  for (const end of ['gone', 'poisoned', 'draining'] as const) {
    const { quarantine, started } = quarantineOf(1)
    called(quarantine, 'a')
    await started[0]!.becomesReady()
    if (end === 'gone') started[0]!.isGone = true
    else started[0]!.drain(end)
    t.same(called(quarantine, 'a'), [], end)
    t.equal(started.length, 2, end)
    t.ok(quarantine.gone(started[0]!.asProcess))
    t.notOk(quarantine.gone(started[0]!.asProcess), 'once')
  }
})

t.test('a process that nobody calls ends, unless something is under way in it', async (t) => {
  const { quarantine, started } = quarantineOf(2)
  called(quarantine, 'idle')
  called(quarantine, 'busy')
  started[1]!.inFlight = 1
  quarantine.upkeep(performance.now() + 59_000)
  t.same(started[0]!.calls, [])
  quarantine.upkeep(performance.now() + 61_000)
  quarantine.upkeep(performance.now() + 62_000)
  t.same(started[0]!.calls, ['stop'], 'once')
  t.same(started[1]!.calls, [])
})

t.test('a process that cannot be started is tried again after a while, and none is when it is closed', async (t) => {
  const { quarantine, started, failures } = quarantineOf(2)
  failures.left = 1
  t.same(called(quarantine, 'a'), [])
  t.same(called(quarantine, 'a'), [], 'not at once')
  t.equal(started.length, 0)
  quarantine.close()
  t.same(called(quarantine, 'b'), [])
  t.equal(started.length, 0)
})
