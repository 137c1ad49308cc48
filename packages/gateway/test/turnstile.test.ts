import fc from 'fast-check'
import t from 'tap'
import { Turnstile } from '../src/turnstile.ts'

/** A turnstile on a clock and an event loop that the test turns; each request takes `costMs`. */
function turnstileOf(costMs: number) {
  const state = { nowMs: 0, turns: [] as Array<() => void>, begun: [] as string[] }
  const turnstile = new Turnstile({
    turnMs: 2,
    clock: () => state.nowMs,
    nextTurn: (callback) => void state.turns.push(callback),
  })
  const enter = (name: string): void =>
    turnstile.enter(name, () => {
      state.nowMs += costMs
      state.begun.push(name)
    })
  const turn = (): void => {
    for (const callback of state.turns.splice(0)) callback()
  }
  return { state, enter, turn }
}

t.test('what fits into a turn is begun at once', async (t) => {
  const { state, enter } = turnstileOf(0.5)
  for (let count = 0; count < 4; count++) enter('a')
  t.equal(state.begun.length, 4)
  enter('a')
  t.equal(state.begun.length, 4, 'the fifth waits')
})

t.test('a call behind many of another function comes in the next turn', async (t) => {
  const { state, enter, turn } = turnstileOf(0.5)
  for (let count = 0; count < 1_000; count++) enter('flood')
  enter('quiet')
  t.notOk(state.begun.includes('quiet'))
  turn()
  t.ok(state.begun.includes('quiet'))
  t.ok(state.begun.length < 20)
})

t.test('everything is begun once, in order within its function', async () => {
  const name = fc.constantFrom('a', 'b', 'c')
  fc.assert(
    fc.property(fc.array(fc.oneof(name, fc.constant('turn')), { size: 'max', maxLength: 300 }), (steps) => {
      const state = { nowMs: 0, turns: [] as Array<() => void>, begun: [] as Array<readonly [string, number]> }
      const turnstile = new Turnstile({
        turnMs: 2,
        clock: () => state.nowMs,
        nextTurn: (callback) => void state.turns.push(callback),
      })
      let entered = 0
      const turn = (): void => {
        for (const callback of state.turns.splice(0)) callback()
      }
      for (const step of steps) {
        if (step === 'turn') {
          turn()
          continue
        }
        const number = entered++
        turnstile.enter(step, () => {
          state.nowMs++
          state.begun.push([step, number])
        })
      }
      while (state.turns.length > 0) turn()
      const isInOrder = ['a', 'b', 'c'].every((one) => {
        const numbers = state.begun.filter(([lane]) => lane === one).map(([, number]) => number)
        return numbers.every((number, index) => index === 0 || numbers[index - 1]! < number)
      })
      return state.begun.length === entered && isInOrder
    }),
  )
})
