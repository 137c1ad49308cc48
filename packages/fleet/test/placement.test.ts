import { CarpoolError } from '@carpool/core'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { HostSlots } from '../src/placement/host-slots.ts'
import { Placement } from '../src/placement/placement.ts'
import type { HostProcess } from '../src/pool/host-process.ts'

/** As much of a host process as those see that send calls to it. */
class SlotsHost {
  readonly id = 7
  readonly isSilent = false
  readonly slots = new HostSlots({ initial: 4, min: 1, max: 4, targetMs: 5 }, () => {})
  readonly connection = { has: () => true, retire: () => {}, send: () => {} } satisfies Partial<Record<string, unknown>>

  get asProcess(): HostProcess {
    return this as unknown as HostProcess
  }
}

function rig() {
  const told: string[] = []
  const host = new SlotsHost()
  const ready: HostProcess[] = [host.asProcess]
  const placement = new Placement({
    queue: { targetMs: 5, intervalMs: 100, maxQueueMs: 1_000 },
    maxQueued: 10,
    readyHosts: () => ready,
    allHosts: () => [host.asProcess],
    hasHost: () => true,
    isOverloaded: () => false,
    give: async () => {},
    isLive: () => true,
    calls: {
      placed: () => told.push('placed'),
      unplaced: () => told.push('unplaced'),
      answered: (_call, { outcome }) => told.push(outcome),
      refused: (_call, { code }) => told.push(code),
    },
  })
  return { placement, told, host, ready }
}

t.test('a call that its host has not begun is told to have no place before it gets another, waits or ends', async (t) => {
  const again = rig()
  const call = routedCall('f')
  again.placement.place(call)
  call.slot?.end()
  again.placement.unbegun(again.host.asProcess, call)
  t.same(again.told, ['placed', 'unplaced', 'placed'])

  const waiting = rig()
  waiting.placement.place(call)
  waiting.ready.pop()
  waiting.placement.unbegun(waiting.host.asProcess, call)
  t.same(waiting.told, ['placed', 'unplaced'])
  waiting.placement.refuse('f', new CarpoolError('function-disabled', 'It is disabled.'))
  t.same(waiting.told, ['placed', 'unplaced', 'function-disabled'])

  const left = rig()
  const leaves = routedCall('f')
  left.placement.place(leaves)
  leaves.cancel()
  left.placement.unbegun(left.host.asProcess, leaves)
  t.same(left.told, ['placed', 'unplaced', 'canceled'])
})

t.test('a function that is deleted is forgotten by the hosts that take no calls now, too', async (t) => {
  const { placement, host, ready } = rig()
  const call = routedCall('f', { owner: 'one' })
  placement.place(call)
  ready.pop()
  call.slot?.end()
  placement.forget('f')
  ready.push(host.asProcess)
  const flowOf = (functionName: string, owner: string) => ({ owner, functionName, costMs: undefined, wallMs: 30_000 })
  // The name is another owner's now: three owners have a slot or two of the four.
  for (const flow of [flowOf('f', 'another'), flowOf('f', 'another'), flowOf('g', 'one'), flowOf('h', 'third')])
    host.slots.take(flow)
  t.notOk(host.slots.hasRoom(flowOf('h', 'third')), 'a third of the slots is one')
})
