import fc from 'fast-check'
import t from 'tap'
import { LOG_LIMITS, LogBudget, LogShares } from '../src/limits/log-throttle.ts'

const limits = { lines: 5, bytes: 100, windowMs: 1000 }
const lines = fc.array(fc.record({ afterMs: fc.nat(400), bytes: fc.nat(60) }), { maxLength: 100 })

t.test('within a window no more passes than the limits allow, and every line passes or is counted', async (t) => {
  fc.assert(
    fc.property(lines, (lines) => {
      const budget = new LogBudget(limits)
      const passed: { atMs: number; bytes: number }[] = []
      let nowMs = 0
      let windowStartMs = Number.NEGATIVE_INFINITY
      for (const { afterMs, bytes } of lines) {
        nowMs += afterMs
        if (nowMs - windowStartMs >= limits.windowMs) windowStartMs = nowMs
        if (budget.take(bytes, nowMs)) passed.push({ atMs: windowStartMs, bytes })
      }
      for (const window of Map.groupBy(passed, ({ atMs }) => atMs).values()) {
        if (window.length > limits.lines) return false
        if (window.reduce((sum, { bytes }) => sum + bytes, 0) > limits.bytes) return false
      }
      const dropped = Number(/\d+/.exec(budget.report() ?? '0')?.[0])
      return passed.length + dropped === lines.length
    }),
  )
  t.pass()
})

t.test('lines within the limits all pass, whenever they come', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: limits.lines }), fc.nat(2000), (sizes, stepMs) => {
      const budget = new LogBudget(limits)
      return sizes.every((bytes, index) => budget.take(bytes, index * stepMs)) && budget.report() === undefined
    }),
  )
  t.pass()
})

t.test('after a window there is room again, however much was dropped in it', async (t) => {
  fc.assert(
    fc.property(lines, fc.nat(limits.bytes), (lines, bytes) => {
      const budget = new LogBudget(limits)
      let nowMs = 0
      for (const line of lines) budget.take(line.bytes, (nowMs += line.afterMs))
      return budget.take(bytes, nowMs + budget.remainingMs(nowMs))
    }),
  )
  t.pass()
})

t.test('once a line is dropped, smaller ones that would fit are dropped with it', async (t) => {
  const budget = new LogBudget(limits)
  t.strictSame(
    [90, 20, 1, 0].map((bytes) => budget.take(bytes, 0)),
    [true, false, false, false],
  )
})

t.test('a report tells once how many lines were dropped, and the limits', async (t) => {
  const budget = new LogBudget(LOG_LIMITS)
  for (let line = 0; line < 6231; line++) budget.take(10, 0)
  t.equal(budget.report(), '… 5231 lines were dropped: the limit is 1000 lines or 1 MiB in 10 s')
  t.equal(budget.report(), undefined)
  budget.take(10, 0)
  t.equal(budget.report(), '… 1 line was dropped: the limit is 1000 lines or 1 MiB in 10 s')
})

t.test('an owner of one function is held back by nothing but its own limit', async (t) => {
  fc.assert(
    fc.property(lines, fc.nat(3), (lines, flooders) => {
      const shares = new LogShares(limits)
      const holder = { owner: 'one', functionName: 'one' }
      const budget = new LogBudget(limits, shares.of(holder))
      const alone = new LogBudget(limits)
      let nowMs = 0
      for (const { afterMs, bytes } of lines) {
        nowMs += afterMs
        for (let flood = 0; flood < flooders * 100; flood++) {
          shares.take({ owner: 'many', functionName: `many-${flood}` }, 10, nowMs)
        }
        if (budget.take(bytes, nowMs) !== alone.take(bytes, nowMs)) return false
      }
      return true
    }),
  )
  t.pass()
})

t.test('what an owner logs beyond the limit of one function is limited, and each of its functions has something', async (t) => {
  const shares = new LogShares(limits)
  const taken = new Map<string, number>()
  for (let line = 0; line < 5; line++) {
    for (let index = 0; index < 20; index++) {
      const functionName = `many-${index}`
      if (shares.take({ owner: 'many', functionName }, 1, 0)) taken.set(functionName, (taken.get(functionName) ?? 0) + 1)
    }
  }
  const sum = [...taken.values()].reduce((total, one) => total + one, 0)
  t.ok(sum <= 9 * limits.lines, `${sum} lines`)
  t.equal(taken.size, 20)
  t.ok(shares.take({ owner: 'many', functionName: 'many-0' }, 1, limits.windowMs), 'the next window is another')
})

t.test('a function that its share had no room for logs again with the next share, not with its own next window', async (t) => {
  const shares = new LogShares(limits)
  let functions = 0
  while (shares.take({ owner: 'many', functionName: `many-${functions}` }, 1, 0)) functions++
  const budget = new LogBudget(limits, shares.of({ owner: 'many', functionName: 'late' }))
  const passes = [500, limits.windowMs - 1, limits.windowMs, 1_499].map((nowMs) => budget.take(1, nowMs))
  t.strictSame(passes, [false, false, true, true])
  t.equal(budget.report(), '… 2 lines were dropped: the functions of the owner log more than their share in 1 s')
})

t.test('a share gives a function no more lines in its window than its own limits do', async (t) => {
  fc.assert(
    fc.property(lines, fc.nat(20), (lines, others) => {
      const shares = new LogShares(limits)
      const budget = new LogBudget(limits, shares.of({ owner: 'many', functionName: 'one' }))
      let [nowMs, windowStartMs, passed, bytesPassed] = [0, Number.NEGATIVE_INFINITY, 0, 0]
      return lines.every(({ afterMs, bytes }) => {
        nowMs += afterMs
        for (let other = 0; other < others; other++) shares.take({ owner: 'many', functionName: `other-${other}` }, 10, nowMs)
        if (nowMs - windowStartMs >= limits.windowMs) [windowStartMs, passed, bytesPassed] = [nowMs, 0, 0]
        if (!budget.take(bytes, nowMs)) return true
        passed++
        bytesPassed += bytes
        return passed <= limits.lines && bytesPassed <= limits.bytes
      })
    }),
  )
  t.pass()
})
