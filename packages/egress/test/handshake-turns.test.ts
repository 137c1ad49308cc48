import t from 'tap'
import { HandshakeTurns } from '../src/handshake-turns.ts'

/** Turns in a time of their own, in which nothing but steps takes any. */
function simulate() {
  let nowMs = 0
  const timers: Array<{ readonly atMs: number; readonly callback: () => void }> = []
  const turns = new HandshakeTurns({
    turns: { enter: (_holder, begin) => begin() },
    clock: () => nowMs,
    cpuMs: () => nowMs,
    after: (delayMs, callback) => void timers.push({ atMs: nowMs + delayMs, callback }),
  })
  const begun: Array<{ readonly name: string; readonly atMs: number }> = []
  return {
    begun,
    enter(name: string, costMs: number, owner = name) {
      turns.enter({ owner, functionName: name }, () => {
        begun.push({ name, atMs: nowMs })
        nowMs += costMs
      })
    },
    /** Time goes on, with what it brings. */
    advanceTo(untilMs: number) {
      for (;;) {
        timers.sort((one, other) => one.atMs - other.atMs)
        if (timers[0] === undefined || timers[0].atMs > untilMs) break
        const { atMs, callback } = timers.shift()!
        nowMs = Math.max(nowMs, atMs)
        callback()
      }
      nowMs = Math.max(nowMs, untilMs)
    },
  }
}

t.test('steps that cost what is usual run at once', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 100; index++) turns.enter('own', 2)
  t.equal(turns.begun.length, 100)
})

t.test('a step that happens to cost much is none that a peer had cost much', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 100; index++) {
    turns.enter('own', index % 25 === 0 ? 11 : 2)
    turns.advanceTo(index * 100)
  }
  t.equal(turns.begun.length, 100)
  t.equal(turns.begun.at(-1)?.atMs, 9_800)
})

t.test('a busy function of which some steps meet with a collection of garbage does not wait', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 2_000; index++) {
    turns.advanceTo(index * 10)
    turns.enter('own', index % 100 === 50 ? 11 : 2)
    if (turns.begun.length !== index + 1) break
  }
  t.equal(turns.begun.length, 2_000)
})

t.test('a function whose steps cost much gets a tenth of the thread, and others do not wait', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 100; index++) turns.enter('evil', 50)
  t.strictSame(turns.begun, [{ name: 'evil', atMs: 0 }])
  turns.enter('own', 2)
  t.strictSame(turns.begun.at(-1), { name: 'own', atMs: 50 })
  turns.advanceTo(5_000)
  const evil = turns.begun.filter(({ name }) => name === 'evil').map(({ atMs }) => atMs)
  t.strictSame(evil, [0, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000])
})

t.test('those that cost much share that tenth by what they cost', async (t) => {
  const turns = simulate()
  for (const [name, costMs] of [
    ['large', 50],
    ['small', 10],
  ] as const) {
    for (let index = 0; index < 500; index++) turns.enter(name, costMs)
  }
  turns.advanceTo(60_000)
  const count = (wanted: string) => turns.begun.filter(({ name }) => name === wanted).length
  t.ok(Math.abs(count('large') * 50 - count('small') * 10) <= 100, `${count('large')} and ${count('small')}`)
})

t.test('an owner with many functions has no more of it', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 100; index++) turns.enter(`evil-${index}`, 50, 'evil')
  t.equal(turns.begun.length, 4)
  turns.enter('own', 2)
  t.equal(turns.begun.length, 5)
})

t.test('one function whose steps cost much does not make the others of its owner wait', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 100; index++) turns.enter('evil', 50, 'owner')
  turns.advanceTo(5_000)
  turns.enter('own', 2, 'owner')
  t.equal(turns.begun.at(-1)?.name, 'own')
})

t.test('it is forgotten after a while', async (t) => {
  const turns = simulate()
  for (let index = 0; index < 4; index++) turns.enter(`evil-${index}`, 50, 'evil')
  turns.advanceTo(10_500)
  turns.enter('evil-9', 2, 'evil')
  turns.enter('evil-0', 2, 'evil')
  t.strictSame(
    turns.begun.slice(-2).map(({ atMs }) => atMs),
    [10_500, 10_502],
  )
})
