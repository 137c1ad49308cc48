import t from 'tap'
import { FetchPace } from '../src/calls/fetch-pace.ts'

t.test('a burst begins at once, the rest at a pace, in order, and each guest by itself', async (t) => {
  let nowMs = 0
  const pace = new FetchPace<object>(() => nowMs)
  const [flooder, other] = [{}, {}]
  const begun: number[] = []
  for (let number = 0; number < 1_000; number++) pace.begin(flooder, number, () => begun.push(number))
  t.equal(begun.length, 500)
  pace.begin(other, 5_000, () => begun.push(5_000))
  t.equal(begun.at(-1), 5_000)
  nowMs = 10
  pace.look()
  t.equal(begun.length, 551)
  nowMs = 1_000
  pace.look()
  t.equal(begun.length, 1_001)
  t.same(
    begun.filter((number) => number < 1_000),
    Array.from({ length: 1_000 }, (_, number) => number),
  )
  t.equal(pace.waiting, 0)
})

t.test('what is stopped while it waits never begins', async (t) => {
  let nowMs = 0
  const pace = new FetchPace<object>(() => nowMs)
  const guest = {}
  let begun = 0
  for (let number = 0; number < 20_000; number++) {
    pace.begin(guest, number, () => begun++)
    if (pace.drop(number) !== number >= 500) t.fail(`fetch ${number}`)
  }
  nowMs = 10_000
  pace.look()
  t.equal(begun, 500)
  t.equal(pace.waiting, 0)
  t.notOk(pace.drop(7), 'it has begun')
})
