import { BodyTurns } from '@carpool/wire'
import fc from 'fast-check'
import t from 'tap'
import { Account } from '../src/accounting/account.ts'
import { Fetches, FetchTable } from '../src/calls/fetches.ts'
import { Streams } from '../src/calls/streams.ts'
import type { Guest } from '../src/isolates/guest.ts'
import type { Send } from '../src/send.ts'

const guest = () => ({ disposed: false, openFetches: 0 })
type FakeGuest = ReturnType<typeof guest>
const account = new Account()
const open = (guest: FakeGuest, guestFetch: number, invocation: number, bytes = 0) =>
  ({ guest, guestFetch, invocation, account, beganAtMs: 0, bytes }) as const

t.test('a fetch is found by its number on the connection or by its guest, once', async (t) => {
  const table = new FetchTable<FakeGuest>()
  const [one, two] = [guest(), guest()]
  const first = table.add(open(one, 1, 10))
  const second = table.add(open(two, 1, 11))
  t.not(first, second)
  t.equal(table.take(first.number), first)
  t.match(first, { guestFetch: 1, invocation: 10, account })
  t.equal(table.take(first.number), undefined)
  t.equal(table.stop(one, 1), undefined)
  t.equal(table.stop(two, 1), second)
  t.equal(table.take(second.number), undefined)
  t.same([table.size, one.openFetches, two.openFetches], [0, 0, 0])
})

t.test('what an invocation waits for is taken out together, and only in the guest that runs it', async (t) => {
  const table = new FetchTable<FakeGuest>()
  const [one, two] = [guest(), guest()]
  const mine = [table.add(open(one, 1, 10)), table.add(open(one, 2, 10))]
  table.add(open(one, 3, 11))
  table.add(open(two, 1, 10))
  t.same(table.takeOf(one, 10), mine)
  t.same(table.takeOf(one, 10), [])
  t.same(table.takeOf(one, 99), [])
  t.same([table.size, one.openFetches, two.openFetches], [2, 1, 1])
})

t.test('what guests that are gone wait for is taken out', async (t) => {
  const table = new FetchTable<FakeGuest>()
  const [one, two] = [guest(), guest()]
  const orphans = [table.add(open(one, 1, 10)), table.add(open(one, 2, 0))]
  table.add(open(two, 1, 11))
  t.same(table.takeOrphans(), [])
  one.disposed = true
  t.same(table.takeOrphans(), orphans)
  t.same(table.takeOrphans(), [])
  t.same([table.size, one.openFetches, two.openFetches], [1, 0, 1])
})

t.test('whatever is taken out in whatever order, each fetch is taken once and the counts stay right', async () => {
  const step = fc.tuple(fc.constantFrom('add', 'take', 'stop', 'of', 'orphans'), fc.nat(1), fc.nat(4), fc.nat(2))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = new FetchTable<FakeGuest>()
      const guests = [guest(), guest()]
      const expected = new Map<number, string>()
      let guestFetch = 0
      for (const [what, who, number, invocation] of steps) {
        const one = guests[who] ?? guest()
        const taken: (number | undefined)[] = []
        if (what === 'add') expected.set(table.add(open(one, ++guestFetch, invocation)).number, `${who} ${invocation}`)
        else if (what === 'take') taken.push(table.take(number)?.number)
        else if (what === 'stop') taken.push(table.stop(one, number)?.number)
        else if (what === 'of') {
          const wanted = [...expected].filter(([, of]) => of === `${who} ${invocation}`).map(([each]) => each)
          taken.push(...table.takeOf(one, invocation).map((fetch) => fetch.number))
          if (taken.join() !== wanted.join()) return false
        } else if (table.takeOrphans().length > 0) return false
        for (const each of taken) if (each !== undefined && !expected.delete(each)) return false
        if (table.size !== expected.size || guests.reduce((sum, { openFetches }) => sum + openFetches, 0) !== expected.size)
          return false
      }
      return true
    }),
  )
})

t.test('the bodies of open fetches are added up, of each guest and of all', async (t) => {
  const table = new FetchTable<FakeGuest>()
  const [one, two] = [guest(), guest()]
  const first = table.add(open(one, 1, 10, 5))
  table.add(open(one, 2, 10, 7))
  table.add(open(two, 1, 11, 100))
  t.same([table.bytesOf(one), table.bytesOf(two), table.bytes], [12, 100, 112])
  table.take(first.number)
  t.same([table.bytesOf(one), table.bytes], [7, 107])
  table.takeOf(one, 10)
  t.same([table.bytesOf(one), table.bytes], [0, 100])
})

t.test('fetches are counted for each invocation of each guest', async (t) => {
  const table = new FetchTable<FakeGuest>()
  const [one, two] = [guest(), guest()]
  const first = table.add(open(one, 1, 10))
  table.add(open(one, 2, 10))
  table.add(open(one, 3, 11))
  table.add(open(two, 1, 10))
  t.same([table.countOf(one, 10), table.countOf(one, 11), table.countOf(two, 10), table.countOf(two, 12)], [2, 1, 1, 0])
  table.take(first.number)
  table.takeOf(one, 11)
  t.same([table.countOf(one, 10), table.countOf(one, 11)], [1, 0])
})

function fetchesOver(send: Send): Fetches {
  const bodies = new BodyTurns({ backlogBytes: () => 0, sendPart: () => {} })
  const streams = new Streams({ send, bodies })
  return new Fetches({ send, bodies, backlogBytes: () => 0, maxBodyBytes: 1_000_000, streams })
}

t.test('what one invocation may not have open never leaves the host', async (t) => {
  const refused: string[] = []
  const fake = {
    ...guest(),
    revision: 'r',
    holder: { owner: 'o', functionName: 'f' },
    accountOf: () => account,
    settleFetch: (_account: Account, _fetch: number, result: string) => refused.push(result),
  } as unknown as Guest
  const send = (): void => {}
  const fetches = fetchesOver(send)
  const start = (invocation: number, id: string | undefined, count: number): void => {
    for (let guestFetch = 0; guestFetch < count; guestFetch++)
      fetches.start(fake, { invocation, id, guestFetch }, '{}', 'none', '')
  }
  start(1, 'one', 1_003)
  t.equal(refused.length, 3)
  t.match(refused[0], 'Too many fetches of this invocation are open; the limit is 1000 at once.')
  start(2, 'two', 1)
  start(0, undefined, 1_001)
  t.equal(refused.length, 3)
  fetches.stopOf(fake, 1)
  start(1, 'one', 1)
  t.equal(refused.filter((text) => text.includes('Too many')).length, 3)
  fetches.stopOf(fake, 0)
  fetches.stopOf(fake, 1)
  fetches.stopOf(fake, 2)
})

t.test('a fetch whose response has begun lets others begin, once', async (t) => {
  let begun = 0
  const fake = {
    ...guest(),
    revision: 'r',
    holder: { owner: 'o', functionName: 'f' },
    accountOf: () => account,
    streams: new Map(),
    fetchHead: () => {},
    settleFetch: () => {},
  } as unknown as Guest
  const send = ({ type }: { readonly type: string }): void => void (type === 'fetch' && begun++)
  const fetches = fetchesOver(send)
  for (let guestFetch = 0; guestFetch < 900; guestFetch++)
    fetches.start(fake, { invocation: 1, id: 'one', guestFetch }, '{}', 'none', '')
  const burst = begun
  t.ok(burst < 300, 'most wait')
  for (let number = 1; number <= 100; number++) fetches.headCame(number, '{}')
  const withHeads = begun
  t.ok(withHeads >= burst + 200)
  for (let number = 1; number <= 100; number++)
    fetches.settle(number, '{"ok":true}', new Uint8Array(), { bytesOut: 0, bytesIn: 0 })
  t.ok(begun < withHeads + 100, 'its end lets no more begin')
  fetches.stopOf(fake, 1)
})
