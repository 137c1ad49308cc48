import { Account } from '@carpool/metering'
import fc from 'fast-check'
import t from 'tap'
import { Stay } from '../src/stay.ts'

t.test('without a clock of entries it is the turn of the last that gave a sign of life, or of the first', async (t) => {
  const [first, second, third] = [new Account(), new Account(), new Account()]
  const stay = new Stay([first, second, third], 0)
  t.equal(stay.current, first)
  stay.reached(first)
  t.equal(stay.current, first)
  stay.reached(second)
  t.equal(stay.current, second)
  stay.reached(third)
  t.equal(stay.current, third)
})

t.test('a sign of life of a later entry tells that those before it have run', async (t) => {
  const [first, second, third] = [new Account(), new Account(), new Account()]
  const stay = new Stay([first, second, third], 0)
  stay.reached(third)
  t.equal(stay.current, third)
  stay.reached(first)
  t.equal(stay.current, third)
})

t.test('signs of one that had its turn, or has none in this stay, tell nothing', async (t) => {
  const [first, second] = [new Account(), new Account()]
  const stay = new Stay([first, second], 0)
  stay.reached(new Account())
  t.equal(stay.current, first)
  stay.reached(second)
  stay.reached(first)
  stay.reached(new Account())
  t.equal(stay.current, second)
})

t.test('many signs of one entry are not taken for those of a later entry of its account', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const stay = new Stay([mine, other, mine], 0)
  stay.reached(mine)
  stay.reached(mine)
  stay.estimated(5)
  t.same(stay.usedNs, [5, 0, 0])
  stay.reached(other)
  t.equal(stay.current, other)
  stay.reached(mine)
  stay.estimated(7)
  t.same(stay.usedNs, [5, 0, 7])
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
          turn = Math.max(turn, accounts.indexOf(account))
          stay.reached(account)
          if (accounts.indexOf(stay.current) !== turn) return false
        }
        return true
      },
    ),
  )
})

t.test('what is estimated is that of the entry whose turn it is', async (t) => {
  const [first, second] = [new Account(), new Account()]
  const stay = new Stay([first, second], 0)
  stay.estimated(10.4)
  stay.reached(second)
  stay.estimated(20.6)
  t.same([stay.usedNs, stay.turnNs, stay.totalNs], [[10, 21], 21, 31])
  t.same([stay.unchargedNs(first), stay.unchargedNs(second)], [10, 21])
})

t.test('a clock of entries says what each has used and which runs, and nothing while none does', async (t) => {
  const [first, second, third] = [new Account(), new Account(), new Account()]
  const stay = new Stay([first, second, third], 0)
  stay.measured([])
  t.same([stay.usedNs, stay.current], [[0, 0, 0], first])
  stay.measured([30, 4.6])
  t.same([stay.usedNs, stay.current, stay.turnNs, stay.totalNs], [[30, 5, 0], second, 5, 35])
  stay.measured([])
  t.same([stay.usedNs, stay.current], [[30, 5, 0], second])
  stay.measured([30, 8, 2, 1000])
  t.same([stay.usedNs, stay.current], [[30, 8, 2], third])
})

t.test('a charge takes what was not charged yet, from each account its own', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const stay = new Stay([mine, other, mine], 0)
  stay.measured([10, 20])
  t.equal(stay.charge(), 30)
  t.equal(stay.charge(), 0)
  stay.measured([10, 25, 7])
  t.same([stay.unchargedNs(mine), stay.unchargedNs(other), stay.unchargedNs(new Account())], [7, 5, 0])
  t.equal(stay.charge(), 12)
  t.same([mine.cpuNs, other.cpuNs, stay.totalNs], [17, 25, 42])
})

t.test('what was charged too high is not given back', async (t) => {
  const account = new Account()
  const stay = new Stay([account], 0)
  stay.measured([100])
  stay.charge()
  stay.measured([60])
  t.equal(stay.charge(), 0)
  stay.measured([110])
  t.equal(stay.charge(), 10)
  t.equal(account.cpuNs, 110)
})

t.test('an account that has its answer is charged through the one in its place', async (t) => {
  const [account, background] = [new Account(), new Account()]
  const stay = new Stay([account], 0)
  stay.measured([10])
  stay.charge()
  account.close(background)
  stay.measured([15])
  stay.charge()
  t.same([account.cpuNs, background.cpuNs], [10, 5])
})

t.test('at the end by another clock, what was used is what was charged early and then', async (t) => {
  const [first, second] = [new Account(), new Account()]
  const stay = new Stay([first, second], 0)
  stay.estimated(40)
  stay.charge()
  stay.estimated(1000)
  stay.settled([5, 7])
  t.same([stay.usedNs, stay.totalNs, stay.charge()], [[45, 7], 52, 0])
  t.equal(first.cpuNs, 40)
})

t.test('a cap keeps the bill of an account down to a limit, with what it used before the stay', async (t) => {
  const [first, second] = [new Account(), new Account()]
  second.charge(30e6)
  const stay = new Stay([first, second], 0)
  stay.measured([200e6, 200e6])
  stay.cap(100, false)
  t.same(stay.usedNs, [200e6, 70e6])
  stay.charge()
  t.same([first.cpuNs, second.cpuNs], [200e6, 100e6])
})

t.test('a cap counts what was charged early, and takes nothing back', async (t) => {
  for (const [earlyMs, billedMs] of [
    [20, 100],
    [150, 150],
  ] as const) {
    const account = new Account()
    const stay = new Stay([account], 0)
    stay.measured([earlyMs * 1e6])
    stay.charge()
    stay.measured([300e6])
    stay.cap(100, false)
    stay.charge()
    t.same([account.cpuNs, stay.totalNs], [billedMs * 1e6, billedMs * 1e6])
  }
})

t.test('a cap of an entry leaves out what the account used before the stay, but not what was charged for it early', async (t) => {
  const account = new Account()
  account.charge(500e6)
  const stay = new Stay([account], 0)
  stay.measured([40e6])
  stay.charge()
  stay.measured([300e6])
  stay.cap(100, true)
  stay.charge()
  t.same([account.cpuNs, stay.totalNs], [600e6, 100e6])
})

t.test('a cap above what was used changes nothing', async (t) => {
  for (const ofEntry of [true, false]) {
    const stay = new Stay([new Account()], 0)
    stay.measured([30e6])
    stay.cap(100, ofEntry)
    t.same(stay.usedNs, [30e6])
  }
})

t.test('a cap counts what other entries of the account used in the stay', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const stay = new Stay([mine, other, mine], 0)
  stay.measured([40e6, 10e6, 200e6])
  stay.cap(150, false)
  stay.charge()
  t.same([mine.cpuNs, other.cpuNs], [150e6, 10e6])
})
