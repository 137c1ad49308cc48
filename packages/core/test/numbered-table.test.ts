import fc from 'fast-check'
import t from 'tap'
import { NumberedTable } from '../src/index.ts'

t.test('it holds what a Map would hold', async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('add'), gap: fc.nat(300) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete'), gap: fc.nat(2000) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const table = new NumberedTable<string>()
      const map = new Map<number, string>()
      let last = 0
      for (const { kind, gap } of steps) {
        if (kind === 'add') {
          last += gap + 1
          table.set(last, `entry ${last}`)
          map.set(last, `entry ${last}`)
        } else {
          const number = Math.max(0, last - gap)
          const held = map.get(number)
          if (table.get(number) !== held || table.delete(number) !== held) return false
          map.delete(number)
        }
        if (table.size !== map.size || table.get(last) !== map.get(last) || table.get(last + 1) !== undefined) return false
      }
      return JSON.stringify([...table.values()].toSorted()) === JSON.stringify([...map.values()].toSorted())
    }),
  )
})

t.test('numbers that a peer makes up find nothing', async (t) => {
  const table = new NumberedTable<string>()
  table.set(1, 'one')
  for (const number of [-1, 0, 2, 1.5, 257, 2 ** 32 + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.equal(table.get(number), undefined, String(number))
    t.equal(table.delete(number), undefined, String(number))
  }
  t.equal(table.get(1), 'one')
})
