import { Account } from '@carpool/metering'
import fc from 'fast-check'
import t from 'tap'
import { EntryGate } from '../src/entry-gate.ts'
import { EntryQueue } from '../src/entry-queue.ts'
import { entry, fakeIsolate, listener, settle, turn } from './support/fake-isolate.ts'

const nanoseconds = fc.nat(5_000_000)
const push = fc.record({ kind: fc.constant('push' as const), account: fc.nat(4) })
const step = fc.oneof(
  { weight: 4, arbitrary: push },
  fc.record({ kind: fc.constant('alone' as const), account: fc.nat(4) }),
  fc.record({
    kind: fc.constant('end' as const),
    ns: nanoseconds,
    told: fc.constantFrom('', '1', '3,1', '5,0,0,9', 'NaN', undefined),
  }),
  fc.record({ kind: fc.constant('throw' as const), ns: nanoseconds }),
  // The thread has not left the isolate when its entries have run, or not even after the wait.
  fc.record({ kind: fc.constant('late' as const), ns: nanoseconds, comesToRest: fc.boolean() }),
  fc.record({ kind: fc.constant('estimate' as const), ns: fc.double({ min: 0, max: 5_000_000, noNaN: true }) }),
  fc.record({ kind: fc.constant('sign' as const), account: fc.nat(4) }),
  fc.record({ kind: fc.constant('early' as const) }),
)

t.test('whatever runs, throws, is late or is charged early: the accounts add up to the clock', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(1_000_000), fc.array(step, { maxLength: 60, size: 'max' }), async (startNs, steps) => {
      const isolate = fakeIsolate(startNs)
      const told = listener()
      const queue = new EntryQueue(isolate, told, new EntryGate(1))
      const accounts = Array.from({ length: 5 }, () => new Account())
      const chargedNs = (): number => accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
      let pushed = 0
      const runsNs = (ns: number, isExact: boolean): void => {
        isolate.clock = { ns: isolate.clock.ns + ns, isExact }
      }
      const finish = async (ns: number): Promise<void> => {
        await settle(isolate, ns)
        for (const waiting of isolate.resting.splice(0)) waiting.resolve(isolate.clock)
        await turn()
      }
      for (const each of steps) {
        const { stay } = queue
        if (each.kind === 'push') queue.push(entry(`e${pushed++}`, accounts[each.account]))
        else if (each.kind === 'alone') queue.alone(accounts[each.account]!, () => isolate.run('spans', [])).catch(() => {})
        else if (each.kind === 'early') queue.chargeEarly()
        else if (stay === undefined) continue
        else if (each.kind === 'sign') stay.reached(accounts[each.account]!)
        else if (each.kind === 'estimate') stay.estimated(each.ns)
        else if (isolate.resting.length > 0) continue
        else if (each.kind === 'end') await settle(isolate, each.ns, each.told)
        else if (each.kind === 'throw') {
          runsNs(each.ns, true)
          isolate.running.shift()?.reject(new Error('thrown'))
          await turn()
        } else {
          runsNs(each.ns, false)
          isolate.running.shift()?.resolve(undefined)
          await turn()
          if (each.comesToRest) isolate.clock = { ...isolate.clock, isExact: true }
          isolate.resting.shift()?.resolve(isolate.clock)
          await turn()
        }
        if (accounts.some(({ cpuNs }) => !Number.isSafeInteger(cpuNs) || cpuNs < 0)) return false
      }
      while (queue.stay !== undefined) await finish(0)
      // One that takes more than all that can have been estimated too high leaves nothing ahead.
      queue.push(entry(`e${pushed++}`, accounts[0]))
      await finish(1_000_000_000)
      const order = isolate.entered.map((name) => Number(name.slice(1)))
      return (
        queue.stay === undefined &&
        told.began.length === told.ended.length &&
        order.length === pushed &&
        order.every((name, index) => name === index) &&
        told.ended.reduce((sum, { totalNs }) => sum + totalNs, 0) === chargedNs() &&
        chargedNs() === isolate.clock.ns - startNs
      )
    }),
  )
})
