import fc from 'fast-check'
import t from 'tap'
import { EntryGate, type Pass } from '../src/entry-gate.ts'

t.test('no more than its places are taken, those who ask come in order, and all come in the end', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.boolean(), { maxLength: 200 }), (places, asks) => {
      const gate = new EntryGate(places)
      const inside: Pass[] = []
      const order: number[] = []
      let asked = 0
      const enter = (): void => {
        const number = asked++
        gate.enter((pass) => {
          order.push(number)
          inside.push(pass)
        })
      }
      for (const asksToEnter of asks) {
        if (asksToEnter) enter()
        else inside.shift()?.leave()
        if (inside.length > places) return false
        if (inside.length < places && gate.waiting > 0) return false
      }
      while (inside.length > 0) inside.shift()!.leave()
      return gate.waiting === 0 && order.length === asked && order.every((number, index) => number === index)
    }),
  )
})

t.test('a place that is given back twice is one place', async (t) => {
  const gate = new EntryGate(1)
  let inside = 0
  const enter = (): void =>
    gate.enter((pass) => {
      inside++
      passes.push(pass)
    })
  const passes: Pass[] = []
  for (let count = 0; count < 3; count++) enter()
  passes[0]!.leave()
  passes[0]!.leave()
  t.same([inside, gate.waiting], [2, 1])
})

t.test('many who leave at once do not fill the stack', async (t) => {
  const gate = new EntryGate(1)
  let first: Pass | undefined
  gate.enter((pass) => (first = pass))
  let left = 0
  for (let count = 0; count < 100_000; count++) {
    gate.enter((pass) => {
      left++
      pass.leave()
    })
  }
  first?.leave()
  t.same([left, gate.waiting], [100_000, 0])
})
