import { Account } from '@carpool/metering'
import fc from 'fast-check'
import t from 'tap'
import { Stay } from '../src/stay.ts'

t.test('whose turn it is: the first that gave no sign of life, or the last', async (t) => {
  const [first, second, third] = [new Account(), new Account(), new Account()]
  const stay = new Stay([first, second, third], 0)
  t.equal(stay.current, first)
  stay.reached(first)
  t.equal(stay.current, second)
  stay.reached(third)
  t.equal(stay.current, third)
})

t.test('a sign of life of a later entry tells that those before it have run', async (t) => {
  const [first, second, third] = [new Account(), new Account(), new Account()]
  const stay = new Stay([first, second, third], 0)
  stay.reached(second)
  t.equal(stay.current, third)
  stay.reached(first)
  t.equal(stay.current, third)
})

t.test('signs of one that had its turn, or has none in this stay, tell nothing', async (t) => {
  const [first, second] = [new Account(), new Account()]
  const stay = new Stay([first, second], 0)
  stay.reached(new Account())
  t.equal(stay.current, first)
  stay.reached(first)
  stay.reached(first)
  t.equal(stay.current, second)
})

t.test('many signs of one entry are not taken for those of a later entry of its account', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const stay = new Stay([mine, other, mine], 0)
  stay.reached(mine)
  stay.reached(mine)
  t.equal(stay.current, other)
  stay.reached(other)
  stay.reached(mine)
  t.equal(stay.current, mine)
})

t.test('whatever signs come, it is always the turn of an entry of the stay, and turns never go back', async () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.nat(9), { minLength: 1 }),
      fc.array(fc.nat(12), { maxLength: 40, size: 'max' }),
      (order, signs) => {
        const all = Array.from({ length: 13 }, () => new Account())
        const accounts = order.map((index) => all[index]!)
        const stay = new Stay(accounts, 0)
        let turn = 0
        for (const sign of signs) {
          const account = all[sign]!
          const index = accounts.indexOf(account)
          stay.reached(account)
          const next = accounts.indexOf(stay.current)
          const expected = index < turn ? turn : Math.min(index + 1, accounts.length - 1)
          if (next !== expected) return false
          turn = next
        }
        return true
      },
    ),
  )
})
