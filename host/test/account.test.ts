import fc from 'fast-check'
import t from 'tap'
import { Account } from '../src/accounting/account.ts'

const EMPTY = { cpuNs: 0, egressBytesOut: 0, egressBytesIn: 0, sockets: 0, socketUs: 0 }

t.test('what is charged to an account that is closed goes to the end of the line', async (t) => {
  const [first, second, last] = [new Account(), new Account(), new Account()]
  first.charge(5)
  first.sent(6)
  first.close(second)
  first.charge(1)
  first.sent(2)
  first.received(3)
  second.close(last)
  first.charge(10)
  first.received(20)
  t.match(first, { cpuNs: 5, egressBytesOut: 6, egressBytesIn: 0 })
  t.match(second, { cpuNs: 1, egressBytesOut: 2, egressBytesIn: 3 })
  t.match(last, { cpuNs: 10, egressBytesOut: 0, egressBytesIn: 20 })
  t.equal(first.open, last)
  t.equal(last.open, last)
})

t.test('what is taken is gone, and only from the account itself', async (t) => {
  const [account, successor] = [new Account(), new Account()]
  account.charge(5)
  account.sent(6)
  account.received(7)
  account.socketOpened(1_000)
  account.close(successor, 1_008)
  successor.charge(100)
  t.strictSame(account.take(), { cpuNs: 5, egressBytesOut: 6, egressBytesIn: 7, sockets: 1, socketUs: 8_000 })
  t.strictSame(account.take(), EMPTY)
  account.socketClosed(1_017)
  t.match(successor, { cpuNs: 100, sockets: 0, socketUs: 9_000 })
})

t.test('whatever is closed and taken, each charge is found once', async () => {
  const step = fc.tuple(fc.constantFrom('charge', 'sent', 'received', 'close', 'take'), fc.nat(9), fc.nat(1000))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
      const accounts = Array.from({ length: 10 }, () => new Account())
      const expected = { ...EMPTY }
      const found = { ...EMPTY }
      const take = (account: Account): void => {
        const taken = account.take()
        for (const key of ['cpuNs', 'egressBytesOut', 'egressBytesIn'] as const) found[key] += taken[key]
      }
      for (const [what, index, amount] of steps) {
        const account = accounts[index]!
        if (what === 'take') take(account)
        else if (what === 'close') {
          // An account's successor is always younger.
          const successor = accounts[index + 1 + (amount % 3)]
          if (successor !== undefined) account.close(successor)
        } else {
          account[what](amount)
          expected[what === 'charge' ? 'cpuNs' : what === 'sent' ? 'egressBytesOut' : 'egressBytesIn'] += amount
        }
      }
      for (const account of accounts) take(account)
      return JSON.stringify(found) === JSON.stringify(expected)
    }),
  )
})

t.test('sockets are counted by the time for which each was open, by whoever had it then', async (t) => {
  const [call, background] = [new Account(), new Account()]
  call.socketOpened(0)
  call.socketOpened(10)
  call.countSockets(20)
  t.match(call, { sockets: 2, socketUs: 30_000 })
  call.close(background, 25)
  t.match(call, { sockets: 2, socketUs: 40_000 })
  call.socketOpened(30)
  call.socketClosed(35)
  background.countSockets(45)
  t.match(background, { sockets: 1, socketUs: 2 * 5_000 + 3 * 5_000 + 2 * 10_000 })
  call.socketClosed(50)
  call.socketClosed(60)
  background.countSockets(1_000)
  t.equal(background.socketUs, 45_000 + 2 * 5_000 + 10_000)
  t.match(call, { sockets: 2, socketUs: 40_000 })
})

t.test('what was charged stays known when it is taken, and some of it put back', async (t) => {
  const account = new Account()
  account.charge(1_500)
  t.equal(account.take().cpuNs, 1_500)
  account.putBack(500)
  account.charge(10)
  t.match(account, { cpuNs: 510, everNs: 1_510 })
})
