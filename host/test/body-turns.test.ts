import t from 'tap'
import fc from 'fast-check'
import { BodyTurns } from '../src/calls/body-turns.ts'

const MB = 1024 * 1024

/** A socket that takes nothing until it is told to. */
function socketOf(): { sent: string[]; turns: BodyTurns; send: (name: string, bytes: number) => () => void; drain: () => void } {
  let backlogBytes = 0
  const sent: string[] = []
  const turns = new BodyTurns(() => backlogBytes)
  const send = (name: string, bytes: number) => (): void => {
    sent.push(name)
    backlogBytes += bytes
  }
  const drain = (): void => {
    backlogBytes = 0
    turns.drained()
  }
  return { sent, turns, send, drain }
}

const holder = (functionName: string, owner = functionName): { owner: string; functionName: string } => ({ owner, functionName })

t.test('what is small goes past bodies that wait, which leave one after the other as the socket takes them', async (t) => {
  const { sent, turns, send, drain } = socketOf()
  for (const name of ['first', 'second', 'third']) turns.enter(holder('flood'), MB, send(name, MB))
  turns.enter(holder('other'), 100, send('small', 100))
  t.same(sent, ['first', 'small'])
  drain()
  t.same(sent, ['first', 'small', 'second'])
  drain()
  drain()
  t.same(sent, ['first', 'small', 'second', 'third'])
  t.equal(turns.waiting, 0)
})

t.test('a body of somebody else does not wait for all of a flood', async (t) => {
  const { sent, turns, send, drain } = socketOf()
  for (let count = 0; count < 100; count++) turns.enter(holder('flood'), MB, send('flood', MB))
  turns.enter(holder('other'), MB, send('other', MB))
  drain()
  drain()
  t.ok(sent.includes('other'), sent.join())
})

t.test('what is dropped while it waits never leaves', async (t) => {
  const { sent, turns, send, drain } = socketOf()
  t.equal(turns.enter(holder('a'), MB, send('first', MB)), undefined)
  const drop = turns.enter(holder('a'), MB, send('second', MB))
  turns.enter(holder('a'), MB, send('third', MB))
  t.equal(drop?.(), true)
  t.equal(drop?.(), false)
  drain()
  t.same(sent, ['first', 'third'])
})

t.test('every body that is not dropped leaves once, those of one function in order', async () => {
  const step = fc.oneof(
    fc.record({
      of: fc.constantFrom('a', 'b', 'c'),
      owner: fc.constantFrom('x', 'y'),
      bytes: fc.integer({ min: 0, max: 2 * MB }),
    }),
    fc.constant('drain' as const),
    fc.constant('drop' as const),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { sent, turns, send, drain } = socketOf()
      const entered: string[] = []
      const dropped = new Set<string>()
      const drops: Array<readonly [string, () => boolean]> = []
      for (const [index, one] of steps.entries()) {
        if (one === 'drain') drain()
        else if (one === 'drop') {
          const last = drops.pop()
          if (last?.[1]() === true) dropped.add(last[0])
        } else {
          // Small ones overtake, so the order is that of the large ones.
          const name = `${one.owner}/${one.of} ${one.bytes >= 64 * 1024 ? 'large' : 'small'} ${index}`
          entered.push(name)
          const drop = turns.enter(holder(one.of, one.owner), one.bytes, send(name, one.bytes))
          if (drop !== undefined) drops.push([name, drop])
        }
      }
      while (turns.waiting > 0) drain()
      const left = entered.filter((name) => !dropped.has(name))
      const kindOf = (name: string): string => name.slice(0, name.lastIndexOf(' '))
      const inOrder = [...new Set(left.map(kindOf))].every((kind) => {
        const [came, went] = [left, sent].map((names) => names.filter((name) => kindOf(name) === kind).join())
        return came === went
      })
      return inOrder && sent.toSorted().join() === left.toSorted().join()
    }),
  )
})
