import { Account } from '../src/accounting/account.ts'
import t from 'tap'
import { Stay } from '../src/scheduler/stay.ts'

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
  const other = new Stay([first, second, third], 0)
  other.measured(new Float64Array([30, 8, 2]), 2)
  t.same([other.usedNs, other.current], [[30, 8, 0], second], 'only as many count as have begun')
})

t.test('a charge takes what was not charged yet, from each account its own', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const stay = new Stay([mine, other, mine], 0)
  stay.measured([10, 20])
  stay.charge()
  stay.charge()
  t.same([mine.cpuNs, other.cpuNs], [10, 20])
  stay.measured([10, 25, 7])
  t.same([stay.unchargedNs(mine), stay.unchargedNs(other), stay.unchargedNs(new Account())], [7, 5, 0])
  stay.charge()
  t.same([mine.cpuNs, other.cpuNs, stay.totalNs], [17, 25, 42])
})

t.test('what was charged too high is not given back', async (t) => {
  const account = new Account()
  const stay = new Stay([account], 0)
  stay.measured([100])
  stay.charge()
  stay.measured([60])
  stay.charge()
  t.equal(account.cpuNs, 100)
  stay.measured([110])
  stay.charge()
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
