import t from 'tap'
import { decideScaling, initialScalingMemory, type FleetView, type ScalingMemory } from '../src/scaling/scaling-policy.ts'
import { fleet, FULL, host, IDLE, POLICY, SATURATED } from './support/scaling-views.ts'

const MEMORY = initialScalingMemory(0)

function decide(view: FleetView, policy: Partial<typeof POLICY> = {}, memory: ScalingMemory = MEMORY) {
  return decideScaling(view, memory, { ...POLICY, ...policy }).decision
}

t.test('a saturated host gets another one beside it', async (t) => {
  t.match(decide(fleet([host(1, SATURATED)])), { action: 'grow', hosts: 1, reason: 'saturated' })
  const loop = { ...SATURATED, cpuCores: 0.3, loopUtilization: 0.8 }
  t.match(decide(fleet([host(1, loop)])), { action: 'grow', reason: 'saturated' }, 'its event loop counts like its CPU')
  const busy = { ...SATURATED, delayedShare: 0.5 }
  t.match(decide(fleet([host(1, busy)])), { action: 'none', reason: 'not-saturated' }, 'a busy CPU alone is well used')
  const young = { ...SATURATED, spanMs: 4_000 }
  t.match(decide(fleet([host(1, young)])), { action: 'none', reason: 'not-saturated' }, 'the whole window has to be known')
  const waiting = { ...IDLE, delayedShare: 1 }
  t.match(decide(fleet([host(1, waiting)])), { action: 'none', reason: 'not-saturated' }, 'delay alone has other reasons')
})

t.test('all hosts have to be saturated', async (t) => {
  t.match(decide(fleet([host(1, SATURATED), host(2)])), { action: 'none', reason: 'not-saturated' })
  t.match(decide(fleet([host(1, SATURATED), host(2, FULL)])), { action: 'grow', reason: 'saturated' })
})

t.test('panic is seen within a second', async (t) => {
  const suddenly = host(1, IDLE, { panic: { ...FULL, spanMs: 1_000 } })
  t.match(decide(fleet([suddenly])), { action: 'grow', reason: 'panic' })
  const known = host(1, IDLE, { panic: { ...FULL, spanMs: 500 } })
  t.match(decide(fleet([known])), { action: 'none', reason: 'not-saturated' }, 'half a second is not enough')
  const used = host(1, IDLE, { panic: { ...FULL, delayedShare: 0.7 } })
  t.match(decide(fleet([used])), { action: 'none', reason: 'not-saturated' }, 'nor is a full CPU, if next to nothing waits')
})

t.test('what stands in the way is told', async (t) => {
  const two = [host(1, SATURATED), host(2, SATURATED)]
  t.match(decide(fleet(two), { maxHosts: 2 }), { action: 'none', reason: 'max-hosts' })
  t.match(decide(fleet(two, { machineBusyCores: 3.5 })), { action: 'none', reason: 'no-spare-core' })
  t.match(decide(fleet(two, { freeBytes: 1e8 })), { action: 'none', reason: 'no-memory' })
  t.match(decide(fleet([...two, host(3, IDLE, { state: 'starting' })])), { action: 'none', reason: 'host-starting' })
  t.match(decide(fleet([...two, host(3, IDLE, { readySinceMs: 98_500 })])), { action: 'none', reason: 'host-starting' })
  t.match(decide(fleet(two), {}, { ...MEMORY, grewAtMs: 96_000 }), { action: 'none', reason: 'growing-pause' })
  t.match(decide(fleet([host(1, IDLE, { state: 'starting' })])), { action: 'none', reason: 'no-host' })
})

t.test('in panic it goes straight to what is needed, as far as there are cores and memory', async (t) => {
  const wide = { ...FULL, cpuCores: 2.4 }
  const memory = { ...MEMORY, grewAtMs: 99_000 }
  const view = fleet([host(1, wide)], { cores: 16 })
  t.match(decide(view, { maxHosts: 16 }, memory), { action: 'grow', hosts: 3, reason: 'panic' })
  t.match(decide(view, { maxHosts: 3 }, memory), { action: 'grow', hosts: 2 })
  t.match(decide({ ...view, freeBytes: 1.5e8 }, { maxHosts: 16 }, memory), { action: 'grow', hosts: 1 })
  t.match(decide({ ...view, cores: 4.5 }, { maxHosts: 16 }, memory), { action: 'grow', hosts: 2 })
})

t.test('a fraction of a core that is too small for a host is no spare core', async (t) => {
  const one = [host(1, SATURATED)]
  t.match(decide(fleet(one, { cores: 1.5, machineBusyCores: 1 })), { action: 'grow' })
  t.match(decide(fleet(one, { cores: 1.2, machineBusyCores: 1 })), { action: 'none', reason: 'no-spare-core' })
  t.match(decide(fleet(one, { cores: 1, machineBusyCores: 0.82 })), { action: 'none', reason: 'no-spare-core' })
})

t.test('a host that uses many cores leaves none for another one', async (t) => {
  const wide = { ...FULL, cpuCores: 3.6 }
  t.match(decide(fleet([host(1, wide)])), { action: 'none', reason: 'no-spare-core' })
})

t.test('below the minimum hosts are added at once, and those that start count', async (t) => {
  t.match(decide(fleet([]), { minHosts: 2 }), { action: 'grow', hosts: 2, reason: 'below-minimum' })
  t.match(decide(fleet([host(1)], { freeBytes: 0 }), { minHosts: 2 }), { action: 'grow', hosts: 1 })
  t.match(decide(fleet([host(1), host(2, IDLE, { state: 'starting' })]), { minHosts: 2 }), { action: 'none' })
})

t.test('after a minute that needed fewer the host with the least work leaves', async (t) => {
  const less = { ...IDLE, cpuCores: 0.005 }
  t.match(decide(fleet([host(1), host(2, less), host(3)])), { action: 'shrink', host: 2, reason: 'idle' })
})

t.test('none leaves', async (t) => {
  const two = [host(1), host(2)]
  const none = { action: 'none', reason: 'not-saturated' }
  t.match(decide(fleet(two)), { action: 'shrink' }, 'of these two one would')
  t.match(decide(fleet(two), { minHosts: 2 }), none, 'at the minimum')
  t.match(decide(fleet(two), {}, { ...MEMORY, grewAtMs: 41_000 }), none, 'within the window of a growth')
  t.match(decide(fleet(two), {}, { ...MEMORY, shrankAtMs: 81_000 }), none, 'soon after another one')
  t.match(decide(fleet(two), {}, initialScalingMemory(50_000)), none, 'before the window is known')
  const young = host(2, IDLE, { long: { ...IDLE, spanMs: 30_000 } })
  t.match(decide(fleet([host(1), young])), none, 'while one is not known for the window')
  t.match(decide(fleet([...two, host(3, IDLE, { state: 'draining' })])), none, 'while another one leaves')
  t.match(
    decide(fleet(two), {}, { ...MEMORY, desired: [{ atMs: 50_000, hosts: 2 }] }),
    none,
    'if both were needed within the window',
  )
  const burst = host(1, IDLE, { panic: FULL })
  t.match(decide(fleet([burst, host(2)])), none, 'while the last second shows more than fits into one')
})

t.test('what was needed is forgotten after the window, and not before', async (t) => {
  let memory = MEMORY
  const at = (atMs: number, cpuCores: number) => {
    const result = decideScaling(fleet([host(1, { ...IDLE, cpuCores }), host(2)], { atMs }), memory, POLICY)
    memory = result.memory
    return result.decision.action
  }
  for (let atMs = 0; atMs <= 100_000; atMs += 250) at(atMs, 0.9)
  t.ok(memory.desired.length < 5, 'only what may still matter is kept')
  for (let atMs = 100_250; atMs <= 160_000; atMs += 250) if (at(atMs, 0.1) !== 'none') t.fail(`shrank at ${atMs}`)
  t.equal(at(160_250, 0.1), 'shrink')
})

t.test('the figures come with the decision', async (t) => {
  const { because } = decide(fleet([host(1, SATURATED), host(2, FULL)], { freeBytes: 5e8 }))
  t.match(because, {
    readyHosts: 2,
    startingHosts: 0,
    desiredHosts: 4,
    steadyCpuCores: 0.925,
    steadyDelayedShare: 0.85,
    cores: 4,
    machineBusyCores: 1.85,
    freeBytes: 5e8,
    meanHostBytes: 1e8,
  })
  t.ok(Object.values(because).every(Number.isFinite))
  t.ok(Object.values(decide(fleet([])).because).every(Number.isFinite))
})
