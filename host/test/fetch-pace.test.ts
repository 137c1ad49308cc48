import t from 'tap'
import { FetchPace } from '../src/calls/fetch-pace.ts'

t.test('a burst begins at once, the rest at a pace, the newest first, and each function by itself', async (t) => {
  let nowMs = 0
  const pace = new FetchPace(() => nowMs)
  const begun: number[] = []
  for (let number = 0; number < 1_000; number++) pace.begin('flooder', number, () => begun.push(number))
  t.equal(begun.length, 200)
  pace.begin('other', 5_000, () => begun.push(5_000))
  t.equal(begun.at(-1), 5_000)
  nowMs = 10
  pace.beginDue()
  t.equal(begun.length, 203)
  for (; nowMs < 5_000; nowMs += 100) pace.beginDue()
  t.equal(begun.length, 1_001)
  t.same(
    begun.filter((number) => number < 1_000),
    [...Array.from({ length: 200 }, (_, number) => number), ...Array.from({ length: 800 }, (_, number) => 999 - number)],
  )
  t.equal(pace.waiting, 0)
})

t.test('whoever is answered goes on as fast as that', async (t) => {
  const pace = new FetchPace(() => 0)
  let begun = 0
  for (let number = 0; number < 2_000; number++) pace.begin('f', number, () => begun++)
  t.equal(begun, 200)
  for (let ended = 0; ended < 200; ended++) pace.answered('f')
  t.equal(begun, 600)
  pace.answered('nobody')
  while (pace.waiting > 0) pace.answered('f')
  t.equal(begun, 2_000)
  pace.beginDue()
})

t.test('more fetches than the pace allows are answered again soon after a time in which none was', async (t) => {
  let nowMs = 0
  const pace = new FetchPace(() => nowMs)
  const stopped = new Set<number>()
  const answers: { readonly dueMs: number; readonly number: number }[] = []
  let answered = 0
  // 400 a second, each of which is stopped after 2 s. From 5 s on an answer takes 50 ms.
  for (let number = 0; nowMs < 10_000; nowMs += 5) {
    for (let count = 0; count < 2; count++) {
      const begun = number++
      pace.begin('f', begun, () => void (nowMs >= 5_000 && answers.push({ dueMs: nowMs + 50, number: begun })))
      const old = begun - 800
      if (old < 0) continue
      stopped.add(old)
      pace.drop(old)
    }
    pace.beginDue()
    while (answers[0] !== undefined && answers[0].dueMs <= nowMs) {
      if (stopped.has(answers.shift()!.number)) continue
      pace.answered('f')
      if (nowMs >= 9_000) answered++
    }
  }
  t.ok(answered >= 390, `${answered} of 400 are answered in the last second`)
})

t.test('answers are no more than a burst ahead', async (t) => {
  const pace = new FetchPace(() => 0)
  let begun = 0
  pace.begin('f', 0, () => begun++)
  for (let ended = 0; ended < 10_000; ended++) pace.answered('f')
  for (let number = 1; number < 2_000; number++) pace.begin('f', number, () => begun++)
  t.equal(begun, 501)
  pace.answered('f')
  t.equal(begun, 503)
  for (let number = 1; number < 2_000; number++) pace.drop(number)
  pace.beginDue()
})

t.test('a function whose isolate is ended has no new burst in the next one', async (t) => {
  let nowMs = 0
  const pace = new FetchPace(() => nowMs)
  let begun = 0
  for (let isolate = 0; isolate < 10; isolate++) {
    for (let number = 0; number < 1_000; number++) pace.begin('f', isolate * 1_000 + number, () => begun++)
    for (let number = 0; number < 1_000; number++) pace.drop(isolate * 1_000 + number)
    nowMs += 100
    pace.beginDue()
  }
  t.equal(begun, 200 + 9 * 20)
})

t.test('what is stopped while it waits never begins', async (t) => {
  let nowMs = 0
  const pace = new FetchPace(() => nowMs)
  let begun = 0
  for (let number = 0; number < 20_000; number++) {
    pace.begin('f', number, () => begun++)
    if (pace.drop(number) !== number >= 200) t.fail(`fetch ${number}`)
  }
  nowMs = 10_000
  pace.beginDue()
  t.equal(begun, 200)
  t.equal(pace.waiting, 0)
  t.notOk(pace.drop(7), 'it has begun')
})

t.test('who is forgotten is the one who came first, of those who do not wait', async (t) => {
  const pace = new FetchPace(() => 0)
  let begun = 0
  for (let number = 0; number < 201; number++) pace.begin('waits', number, () => begun++)
  for (let number = 0; number < 200; number++) pace.begin('rests', 1_000 + number, () => begun++)
  for (let index = 0; index < 1_000; index++) pace.begin(`f${index}`, 10_000 + index, () => begun++)
  t.equal(begun, 200 + 200 + 1_000)
  pace.begin('waits', 201, () => begun++)
  t.equal(begun, 1_400)
  pace.begin('rests', 2_000, () => begun++)
  t.equal(begun, 1_401)
  pace.drop(200)
  pace.drop(201)
  pace.beginDue()
})
