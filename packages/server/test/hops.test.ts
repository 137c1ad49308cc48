import { CarpoolError } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { Hops } from '../src/hops.ts'

const MAX_HOPS = 5

function hopsAt(state: { nowMs: number } = { nowMs: 0 }): Hops {
  return new Hops({ maxHops: MAX_HOPS, clock: () => state.nowMs })
}

t.test('each call in a row counts one more', async (t) => {
  const hops = hopsAt()
  let count = hops.fromHeader(hops.headerOf({ revision: 'r', id: 'outside' }))
  t.equal(count, 1, 'nothing is known of calls from outside')
  for (let depth = 1; depth <= MAX_HOPS; depth++) {
    hops.began({ revision: 'r', id: `i-${depth}` }, count)
    count = hops.fromHeader(hops.headerOf({ revision: 'r', id: `i-${depth}` }))
    t.equal(count, depth + 1)
  }
  hops.began({ revision: 'r', id: 'beyond' }, count)
  t.equal(
    hops.fromHeader(hops.headerOf({ revision: 'r', id: 'beyond' })),
    MAX_HOPS + 1,
    'no count is higher than one that is refused',
  )
})

t.test('only what this process has written counts', async (t) => {
  const hops = hopsAt()
  const header = hops.headerOf({ revision: 'r', id: 'i' })
  t.match(header, /^1\.[\w-]{22}$/)
  t.equal(hopsAt().fromHeader(header), 0, 'another process has another key')
  t.equal(hops.fromHeader([header, header]), 0)
  t.equal(hops.fromHeader(undefined), 0)
  const any = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.tuple(fc.nat(20), fc.string()).map(([n, code]) => `${n}.${code}`),
  )
  fc.assert(fc.property(any, (value) => hops.fromHeader(value) === 0))
  const edit = fc.tuple(fc.nat(header.length - 1), fc.string({ minLength: 1, maxLength: 1 }))
  fc.assert(
    fc.property(edit, ([index, character]) => {
      const edited = header.slice(0, index) + character + header.slice(index + 1)
      return edited === header || hops.fromHeader(edited) === 0
    }),
  )
})

t.test('what a function does in the background counts from its latest call', async (t) => {
  const state = { nowMs: 0 }
  const hops = hopsAt(state)
  const inBackground = (revision: string): number => hops.fromHeader(hops.headerOf({ revision }))
  hops.began({ revision: 'r', id: 'i' }, 3)
  hops.began({ revision: 'r', id: 'j' }, 2)
  hops.ended('i')
  hops.ended('j')
  t.equal(inBackground('r'), 3)
  t.equal(inBackground('other'), 1)
  state.nowMs = 60_000
  t.equal(inBackground('r'), 3, 'a minute later')
  hops.began({ revision: 'r', id: 'k' }, 1)
  state.nowMs = 130_000
  t.equal(inBackground('r'), 2, 'only the later call is left')
  state.nowMs = 200_000
  t.equal(inBackground('r'), 1)
})

t.test('a header that somebody sends again counts until the next call from outside, not for minutes', async (t) => {
  const state = { nowMs: 0 }
  const hops = hopsAt(state)
  const call = (functionName: string, count = 0): void => {
    const one = routedCall(functionName, { hops: count })
    hops.check(one)
    hops.follow(one)
    hops.ended(one.id)
  }
  const inBackground = (revision: string): number => hops.fromHeader(hops.headerOf({ revision }))
  // What a function that was called deep in a row fetched from a server of the sender's.
  hops.began({ revision: 'g', id: 'deep' }, MAX_HOPS - 1)
  const seen = hops.headerOf({ revision: 'g', id: 'deep' })
  for (const laterMs of [0, 10_000, 70_000]) {
    state.nowMs += laterMs
    call('f', hops.fromHeader(seen))
    t.equal(inBackground('f'), MAX_HOPS + 1, 'its calls would be refused')
    state.nowMs += 61_000
    call('g')
    t.equal(inBackground('f'), MAX_HOPS + 1, 'a call of another function says nothing of it')
    call('f')
    t.equal(inBackground('f'), 1)
    state.nowMs += 61_000
    t.equal(inBackground('f'), 1)
  }
})

t.test('calls are followed while they are under way, and refused beyond the limit', async (t) => {
  let loops = 0
  const hops = new Hops({ maxHops: MAX_HOPS, onLoop: () => loops++ })
  const fetchesOf = (count: number): number => {
    const call = routedCall('f', { hops: count })
    hops.check(call)
    hops.follow(call)
    const seen = hops.fromHeader(hops.headerOf({ revision: 'f', id: call.id }))
    hops.ended(call.id)
    t.equal(hops.fromHeader(hops.headerOf({ revision: 'q', id: call.id })), 1, 'it is forgotten')
    return seen
  }
  t.strictSame([0, MAX_HOPS, 2].map(fetchesOf), [1, MAX_HOPS + 1, 3])
  t.throws(
    () => fetchesOf(MAX_HOPS + 1),
    new CarpoolError('loop-detected', 'Functions called each other 5 times in a row; that is the limit, so "f" is not called.'),
  )
  t.equal(loops, 1)
})
