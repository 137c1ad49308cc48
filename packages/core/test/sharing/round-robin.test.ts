/** What is begun in a turn of the event loop is bounded by the time that it takes, with what its promises do. */
import t, { type Test } from 'tap'
import { RoundRobin } from '../../src/sharing/round-robin.ts'

const holder = { owner: '', functionName: 'f' }

/** Turns that come when the test says so, on a clock that the tasks move. */
function turnsWith(options: { readonly afterTask?: (callback: () => void) => void } = {}) {
  const clock = { nowMs: 0 }
  let due: Array<() => void> = []
  const roundRobin = new RoundRobin({
    turnMs: 1,
    clock: () => clock.nowMs,
    nextTurn: (callback) => void due.push(callback),
    ...options,
  })
  const turn = async (): Promise<void> => {
    const now = due
    due = []
    for (const callback of now) callback()
    await new Promise(setImmediate)
  }
  return { clock, roundRobin, turn }
}

/** Of ten tasks three are begun in a turn. */
async function checkTurns(t: Test, { roundRobin, turn }: ReturnType<typeof turnsWith>, begun: () => number): Promise<void> {
  t.equal(begun(), 3)
  await turn()
  t.equal(begun(), 6)
  for (let left = 0; left < 3; left++) await turn()
  t.equal(begun(), 10)
  t.notOk(roundRobin.isBusy)
}

t.test('tasks are begun for as long as a turn lasts, and the others in the next ones', async (t) => {
  const turns = turnsWith()
  const { clock, roundRobin } = turns
  let begun = 0
  for (let task = 0; task < 10; task++) {
    roundRobin.enter(holder, () => {
      begun++
      clock.nowMs += 0.4
    })
  }
  await checkTurns(t, turns, () => begun)
})

t.test('what a task does in promises counts, and the next one waits for it', async (t) => {
  const afterTask = (callback: () => void): void => queueMicrotask(() => process.nextTick(callback))
  const turns = turnsWith({ afterTask })
  const { clock, roundRobin } = turns
  let [begun, done] = [0, 0]
  const connect = async (): Promise<void> => {
    t.equal(begun++, done, 'those before it are done')
    for (let step = 0; step < 4; step++) {
      await Promise.resolve()
      clock.nowMs += 0.1
    }
    done++
  }
  for (let task = 0; task < 10; task++) roundRobin.enter(holder, () => void connect())
  t.equal(begun, 1)
  await new Promise(setImmediate)
  await checkTurns(t, turns, () => done)
  roundRobin.enter(holder, () => done++)
  t.equal(done, 11, 'at once where nothing waits')
})

t.test('a task that fails takes none of the others with it', async (t) => {
  const { roundRobin } = turnsWith({ afterTask: (callback) => queueMicrotask(callback) })
  t.throws(() =>
    roundRobin.enter(holder, () => {
      throw new Error('failed')
    }),
  )
  let begun = 0
  roundRobin.enter(holder, () => begun++)
  await Promise.resolve()
  t.equal(begun, 1)
})
