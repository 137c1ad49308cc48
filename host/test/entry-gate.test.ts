import fc from 'fast-check'
import t from 'tap'
import { EntryGate, type Pass } from '../src/scheduler/entry-gate.ts'

t.test('no more than its places are taken, and all who ask come in the end, each in its own order', async () => {
  const guests = { a: {}, b: {}, c: {} }
  const step = fc.oneof(fc.constant('leave'), fc.constantFrom('a', 'b', 'c'))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 200, size: 'max' }), (places, steps) => {
      const gate = new EntryGate(places)
      const inside: Pass[] = []
      const order: Array<readonly [string, number]> = []
      let asked = 0
      for (const name of steps) {
        const number = asked
        if (name === 'leave') inside.shift()?.leave()
        else {
          asked++
          gate.enter({
            guest: guests[name as 'a'],
            costMs: 1,
            begin: (pass) => {
              order.push([name, number])
              inside.push(pass)
            },
          })
        }
        if (inside.length > places) return false
        if (inside.length < places && gate.waiting > 0) return false
      }
      while (inside.length > 0) inside.shift()!.leave()
      const isInOrder = ['a', 'b', 'c'].every((name) => {
        const numbers = order.filter(([one]) => one === name).map(([, number]) => number)
        return numbers.every((number, index) => index === 0 || numbers[index - 1]! < number)
      })
      return gate.waiting === 0 && order.length === asked && isInOrder
    }),
  )
})

t.test('who needs little does not wait for a round of those who need much', async (t) => {
  const gate = new EntryGate(1)
  let place: Pass | undefined
  const order: string[] = []
  const guests = new Map<string, object>()
  const enter = (name: string, costMs: number): void => {
    const guest = guests.get(name) ?? {}
    guests.set(name, guest)
    gate.enter({
      guest,
      costMs,
      begin: (pass) => {
        order.push(name)
        place = pass
      },
    })
  }
  for (let guest = 0; guest < 300; guest++) enter(`hog ${guest}`, 10)
  for (let round = 0; round < 20; round++) {
    // Who leaves asks again, as one does that has more work.
    const last = order.at(-1)!
    place?.leave()
    if (last !== 'quiet') enter(last, 10)
  }
  const before = order.length
  for (let call = 0; call < 10; call++) {
    enter('quiet', 0.02)
    for (let turn = 0; turn < 3; turn++) place?.leave()
  }
  t.ok(order.slice(before).filter((name) => name === 'quiet').length >= 9)
})

t.test('who always asks gets no more than its share', async (t) => {
  const gate = new EntryGate(1)
  const servedMs = { small: 0, large: 0 }
  const costs = { small: 1, large: 10 }
  const guests = { small: {}, large: {} }
  let left = 2_000
  const enter = (name: 'small' | 'large'): void =>
    gate.enter({
      guest: guests[name],
      costMs: costs[name],
      begin: (pass) => {
        servedMs[name] += costs[name]
        if (left-- <= 0) return
        // It asks again before it leaves, so that both always wait.
        enter(name)
        turns.push(pass)
      },
    })
  const turns: Pass[] = []
  enter('large')
  enter('small')
  while (turns.length > 0) turns.shift()!.leave()
  t.ok(Math.abs(servedMs.small - servedMs.large) <= 20, `${servedMs.small} and ${servedMs.large}`)
})

t.test('a place that is given back twice is one place', async (t) => {
  const gate = new EntryGate(1)
  const passes: Pass[] = []
  for (let count = 0; count < 3; count++) gate.enter({ guest: {}, costMs: 1, begin: (pass) => void passes.push(pass) })
  passes[0]!.leave()
  passes[0]!.leave()
  t.same([passes.length, gate.waiting], [2, 1])
})

t.test('many who leave at once do not fill the stack', async (t) => {
  const gate = new EntryGate(1)
  let first: Pass | undefined
  gate.enter({ guest: {}, costMs: 1, begin: (pass) => (first = pass) })
  let left = 0
  for (let count = 0; count < 2_000; count++) {
    gate.enter({
      guest: {},
      costMs: 1,
      begin: (pass) => {
        left++
        pass.leave()
      },
    })
  }
  first?.leave()
  t.same([left, gate.waiting], [2_000, 0])
})
