import { CarpoolError, type CallChain } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { ANY_UNIT } from '../../../test/support/any-text.ts'
import { routedCall } from '../../../test/support/call.ts'
import { Hops } from '../src/hops.ts'

const MAX_HOPS = 5
const MAX_NESTED = 12

function hopsAt(state: { nowMs: number } = { nowMs: 0 }): Hops {
  return new Hops({ maxHops: MAX_HOPS, maxNestedCalls: MAX_NESTED, clock: () => state.nowMs })
}

t.test('each call in a row counts one more', async (t) => {
  const hops = hopsAt()
  let chain = hops.fromHeader(hops.headerOf({ revision: 'r', id: 'outside' }))
  const { tree } = chain
  t.equal(chain.hops, 1, 'nothing is known of calls from outside')
  for (let depth = 1; depth <= MAX_HOPS; depth++) {
    hops.began({ revision: 'r', id: `i-${depth}` }, chain)
    chain = hops.fromHeader(hops.headerOf({ revision: 'r', id: `i-${depth}` }))
    t.strictSame(chain, { hops: depth + 1, tree })
  }
  hops.began({ revision: 'r', id: 'beyond' }, chain)
  t.equal(
    hops.fromHeader(hops.headerOf({ revision: 'r', id: 'beyond' })).hops,
    MAX_HOPS + 1,
    'no count is higher than one that is refused',
  )
})

t.test('calls have one tree if they come of one call from outside, whoever makes them', async (t) => {
  const hops = hopsAt()
  const treeOf = (id?: string): string => hops.fromHeader(hops.headerOf({ revision: 'r', id })).tree
  const [one, other] = [treeOf('one'), treeOf('other')]
  t.match(one, /^[\w-]{16}$/)
  t.not(one, other)
  t.equal(treeOf('one'), one, 'each of its fetches is of it')
  hops.began({ revision: 'r', id: 'nested' }, { hops: 1, tree: one })
  t.equal(treeOf('nested'), one)
  t.equal(treeOf(), one, 'also what the function does in the background')
  hops.ended('nested')
  t.equal(treeOf(), one)
  hops.beganFromOutside('r')
  t.not(treeOf(), treeOf(), 'what a function begins by itself is no call, so each of these is the first of its tree')
})

t.test('only what this process has written counts', async (t) => {
  const hops = hopsAt()
  const header = hops.headerOf({ revision: 'r', id: 'i' })
  t.match(header, /^1\.[\w-]{16}\.[\w-]{22}$/)
  const outside = { hops: 0, tree: '' }
  const isOutside = (value: string): boolean => hops.fromHeader(value).hops === 0 && hops.fromHeader(value).tree === ''
  t.strictSame(hopsAt().fromHeader(header), outside, 'another process has another key')
  t.strictSame(hops.fromHeader([header, header]), outside)
  t.strictSame(hops.fromHeader(undefined), outside)
  const { tree } = hops.fromHeader(header)
  const text = fc.stringMatching(/^[\w-]{16,22}$/)
  const any = fc.oneof(
    fc.string(),
    fc.string({ unit: ANY_UNIT }),
    fc.tuple(fc.nat(20), fc.string()).map(([n, code]) => `${n}.${code}`),
    fc.tuple(fc.nat(20), fc.oneof(text, fc.constant(tree)), text).map((parts) => parts.join('.')),
  )
  fc.assert(fc.property(any, isOutside))
  t.ok(isOutside(header.replace('1.', '0.')), 'no count less')
  t.ok(isOutside(header.replace(tree, hops.fromHeader(hops.headerOf({ revision: 'r', id: 'j' })).tree)), 'no other tree')
  const edit = fc.tuple(fc.nat(header.length - 1), fc.string({ minLength: 1, maxLength: 1 }))
  fc.assert(
    fc.property(edit, ([index, character]) => {
      const edited = header.slice(0, index) + character + header.slice(index + 1)
      return edited === header || isOutside(edited)
    }),
  )
})

t.test('what a function does in the background counts from its latest call', async (t) => {
  const state = { nowMs: 0 }
  const hops = hopsAt(state)
  const inBackground = (revision: string): number => hops.fromHeader(hops.headerOf({ revision })).hops
  const tree = 'a'.repeat(16)
  hops.began({ revision: 'r', id: 'i' }, { hops: 3, tree })
  hops.began({ revision: 'r', id: 'j' }, { hops: 2, tree })
  hops.ended('i')
  hops.ended('j')
  t.equal(inBackground('r'), 3)
  t.equal(inBackground('other'), 1)
  state.nowMs = 60_000
  t.equal(inBackground('r'), 3, 'a minute later')
  hops.began({ revision: 'r', id: 'k' }, { hops: 1, tree })
  state.nowMs = 130_000
  t.equal(inBackground('r'), 2, 'only the later call is left')
  state.nowMs = 200_000
  t.equal(inBackground('r'), 1)
})

t.test('a header that somebody sends again counts until the next call from outside, not for minutes', async (t) => {
  const state = { nowMs: 0 }
  const hops = hopsAt(state)
  const call = (functionName: string, chain: Partial<CallChain> = {}): void => {
    const one = routedCall(functionName, chain)
    hops.check(one)
    hops.follow(one)
    hops.ended(one.id)
  }
  const inBackground = (revision: string): number => hops.fromHeader(hops.headerOf({ revision })).hops
  // What a function that was called deep in a row fetched from a server of the sender's.
  hops.began({ revision: 'g', id: 'deep' }, { hops: MAX_HOPS - 1, tree: 'a'.repeat(16) })
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
  const hops = hopsAt()
  const fetchesOf = (count: number): number => {
    const call = routedCall('f', { hops: count, tree: 'a'.repeat(count > 0 ? 16 : 0) })
    hops.check(call)
    hops.follow(call)
    const seen = hops.fromHeader(hops.headerOf({ revision: 'f', id: call.id })).hops
    hops.ended(call.id)
    t.equal(hops.fromHeader(hops.headerOf({ revision: 'q', id: call.id })).hops, 1, 'it is forgotten')
    return seen
  }
  t.strictSame([0, MAX_HOPS, 2].map(fetchesOf), [1, MAX_HOPS + 1, 3])
  t.throws(
    () => fetchesOf(MAX_HOPS + 1),
    new CarpoolError('loop-detected', 'Functions called each other 5 times in a row; that is the limit, so "f" is not called.'),
  )
})

t.test('a tree of calls has a limit, however deep it is, and each has its own', async (t) => {
  const state = { nowMs: 0 }
  const hops = hopsAt(state)
  const nested = (root: string): CallChain => hops.fromHeader(hops.headerOf({ revision: 'f', id: root }))
  const isLetIn = (chain: CallChain): boolean => {
    try {
      hops.check({ ...chain, functionName: 'f' })
      return true
    } catch (cause) {
      const what = `Functions made ${MAX_NESTED} calls because of one call from outside`
      t.match(cause, { code: 'loop-detected', message: `${what}; that is the limit, so "f" is not called.` })
      return false
    }
  }
  const { tree } = nested('root')
  const depths = Array.from({ length: 30 }, (_, index) => ({ hops: 1 + (index % MAX_HOPS), tree }))
  t.equal(depths.filter(isLetIn).length, MAX_NESTED)
  t.ok(isLetIn(nested('other')))
  t.ok(isLetIn({ hops: 0, tree: '' }), 'calls from outside are not counted')
  for (let minute = 0; minute < 5; minute++) {
    state.nowMs += 59_000
    t.notOk(isLetIn({ hops: 1, tree }), 'as long as calls of it come')
  }
  state.nowMs += 120_000
  t.ok(isLetIn({ hops: 1, tree }), 'it is forgotten')
})

t.test('what a call from outside begins in the background is a tree for each fetch, so calls of all of them end', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 4 }), (begun, width) => {
      const hops = hopsAt()
      const first = routedCall('f', { hops: 0, tree: '' })
      hops.follow(first)
      const origin = { revision: first.revision.id }
      const waiting = Array.from({ length: begun }, () => hops.fromHeader(hops.headerOf(origin)))
      let calls = 0
      for (let chain = waiting.shift(); chain !== undefined; chain = waiting.shift()) {
        try {
          hops.check({ ...chain, functionName: 'f' })
        } catch {
          continue
        }
        calls++
        const call = routedCall('f', chain)
        hops.follow(call)
        hops.ended(call.id)
        for (let fetch = 0; fetch < width; fetch++) waiting.push(hops.fromHeader(hops.headerOf(origin)))
      }
      return calls >= begun && calls <= begun * MAX_NESTED
    }),
  )
})

t.test('there are at most so many calls in all, whatever calls what', async () => {
  // Each call fetches so many times at once, or when it has ended, and each fetch is a call.
  const widths = fc.array(fc.nat(5), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(widths, fc.boolean(), (widths, isLate) => {
      const hops = hopsAt()
      let calls = 0
      const waiting: CallChain[] = [{ hops: 0, tree: '' }]
      for (let chain = waiting.shift(); chain !== undefined; chain = waiting.shift()) {
        const call = routedCall('f', chain)
        try {
          hops.check(call)
        } catch {
          continue
        }
        hops.follow(call)
        const width = widths[calls++ % widths.length] ?? 0
        // Background work of a call from outside begins trees of its own: nobody called it.
        const isBackground = isLate && chain.hops > 0
        if (isBackground) hops.ended(call.id)
        const origin = { revision: call.revision.id, ...(!isBackground && { id: call.id }) }
        for (let fetch = 0; fetch < width; fetch++) waiting.push(hops.fromHeader(hops.headerOf(origin)))
        hops.ended(call.id)
      }
      return calls <= 1 + MAX_NESTED
    }),
  )
})
