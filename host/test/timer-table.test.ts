import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Account } from '../src/accounting/account.ts'
import { TimerTable } from '../src/isolates/timer-table.ts'

const ACCOUNT = {} as Account

t.test('a timer that is started again under its number fires once, and is stopped with the table', async (t) => {
  const fired: number[] = []
  const table = new TimerTable((timer) => fired.push(timer))
  const before = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  for (let count = 0; count < 10; count++) table.start(1, 1e6, ACCOUNT)
  t.equal(table.size, 1)
  t.equal(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length, before + 1)
  table.start(1, 0, ACCOUNT)
  while (fired.length === 0) await setImmediate()
  t.same(fired, [1])
  t.equal(table.size, 0)
  t.equal(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length, before)
})
