import fc from 'fast-check'
import t from 'tap'
import { Heap, type Placed } from '../../src/sharing/heap.ts'

interface Ranked extends Placed {
  readonly id: number
  rank: number
}

const step = fc.record({
  act: fc.constantFrom('add', 'add', 'remove', 'move', 'find'),
  which: fc.nat(),
  rank: fc.nat(20),
})

t.test('whatever is added, moved and taken out, the first is first, and what is found is the first of its kind', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const isBefore = (one: Ranked, other: Ranked): boolean =>
        one.rank < other.rank || (one.rank === other.rank && one.id < other.id)
      const heap = new Heap<Ranked>(isBefore)
      const model: Ranked[] = []
      for (const [id, { act, which, rank }] of steps.entries()) {
        const chosen = model[which % Math.max(1, model.length)]
        if (act === 'add') {
          const added = { id, rank, place: -1 }
          heap.add(added)
          model.push(added)
        } else if (act === 'remove' && chosen !== undefined) {
          heap.remove(chosen)
          model.splice(model.indexOf(chosen), 1)
        } else if (act === 'move' && chosen !== undefined) {
          chosen.rank = rank
          heap.moved(chosen)
        }
        const sorted = model.toSorted((one, other) => (isBefore(one, other) ? -1 : 1))
        if (heap.first !== sorted[0] || heap.size !== sorted.length) return false
        if (act !== 'find') continue
        const asked: Ranked[] = []
        const isWanted = (one: Ranked): boolean => one.id % 4 === which % 4
        const found = heap.find((one) => {
          asked.push(one)
          return isWanted(one)
        })
        const position = sorted.findIndex(isWanted)
        const before = position === -1 ? sorted : sorted.slice(0, position + 1)
        if (found !== sorted[position] || asked.some((one, index) => one !== before[index])) return false
        if (asked.length !== before.length) return false
      }
      return true
    }),
  )
})
