import { Account } from '@carpool/metering'
import t from 'tap'
import type { Entry } from '../src/stay.ts'
import { WaitingEntries } from '../src/waiting-entries.ts'

const background = new Account()

function entry(name: string, account: Account, invocation?: number): Entry {
  return { name, args: [], account, readyAtMs: 7, ...(invocation !== undefined && { invocation }) }
}

t.test('what somebody waits for goes first, each in the order in which it came', async (t) => {
  const waiting = new WaitingEntries(background)
  const [open, closed] = [new Account(), new Account()]
  closed.close(background)
  waiting.push(entry('timer of an invocation that has its answer', closed))
  waiting.push(entry('first', open, 1))
  waiting.push(entry('cancel', background))
  waiting.push(entry('second', open, 2))
  t.same(names(waiting.take(8)), ['first', 'second'])
  t.same(names(waiting.take(1)), ['timer of an invocation that has its answer'])
  t.same(names(waiting.take(8)), ['cancel'])
  t.ok(waiting.isEmpty)
})

t.test('a busy guest still gets round to what nobody waits for', async (t) => {
  const waiting = new WaitingEntries(background)
  waiting.push(entry('timer', background))
  const order: string[] = []
  for (let stay = 0; stay < 20; stay++) {
    waiting.push(entry('call', new Account(), stay))
    order.push(...names(waiting.take(1)))
  }
  t.ok(order.includes('timer'))
  t.equal(order.indexOf('timer'), 9)
})

t.test('what waits tells whose it is, and since when; what nobody waits for is not counted', async (t) => {
  const waiting = new WaitingEntries(background)
  waiting.push(entry('timer', background))
  t.equal(waiting.sinceMs, undefined)
  const [begun, unbegun] = [new Account(), new Account()]
  waiting.push(entry('fireTimer', begun))
  waiting.push(entry('invoke', unbegun, 3))
  t.same([...waiting.resumed], [begun])
  t.same([...waiting.unbegun], [unbegun])
  t.equal(waiting.sinceMs, 7)
  t.ok(waiting.drop(3))
  t.notOk(waiting.drop(3))
  t.equal(waiting.unbegun.size, 0)
})

function names(entries: readonly Entry[]): string[] {
  return entries.map(({ name }) => name)
}
