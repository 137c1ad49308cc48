import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { IsolateLease } from '../src/isolates/isolate-pool.ts'
import { MB, poolOf, type FakeIsolate } from './support/fake-pool.ts'

const MAX_ISOLATES = 4

type Step =
  | { readonly kind: 'acquire' | 'retire' | 'pin' | 'lose'; readonly revision: string }
  | { readonly kind: 'release'; readonly index: number }
  | { readonly kind: 'relieve'; readonly bytes: number }
  | { readonly kind: 'change'; readonly revision: string; readonly heapBytes: number; readonly hasBackgroundWork: boolean }

const kind = <K extends Step['kind']>(kind: K): fc.Arbitrary<K> => fc.constant(kind)
const revision = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g')
const heapBytes = fc.integer({ min: 2 * MB, max: 4 * MB })
const steps = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Step>[]>(
    { weight: 6, arbitrary: fc.record({ kind: kind('acquire'), revision }) },
    { weight: 5, arbitrary: fc.record({ kind: kind('release'), index: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ kind: kind('relieve'), bytes: fc.nat(10 * MB) }) },
    { weight: 3, arbitrary: fc.record({ kind: kind('change'), revision, heapBytes, hasBackgroundWork: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: kind('retire'), revision }) },
    { weight: 1, arbitrary: fc.record({ kind: kind('pin'), revision }) },
    { weight: 1, arbitrary: fc.record({ kind: kind('lose'), revision }) },
  ),
  { minLength: 1, maxLength: 60, size: 'max' },
)

/** A pool, and beside it what is known of its isolates from outside. */
class Rig {
  readonly pool
  readonly #made: FakeIsolate[]
  readonly #leases: Array<IsolateLease<FakeIsolate>> = []
  readonly #pinned = new Set<string>()
  readonly #retired = new Set<FakeIsolate>()
  /** In order of use, the most recent last. */
  readonly #used = new Set<FakeIsolate>()

  constructor() {
    const { pool, made } = poolOf(MAX_ISOLATES)
    this.pool = pool
    this.#made = made
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'acquire': {
        const lease = await this.pool.acquire(step.revision)
        this.#leases.push(lease)
        this.#used.delete(lease.isolate)
        this.#used.add(lease.isolate)
        return
      }
      case 'release': {
        const [lease] = this.#leases.splice(step.index % Math.max(1, this.#leases.length), 1)
        return this.#nobodyLeaves(() => lease?.release())
      }
      case 'relieve':
        return this.#nobodyLeaves(() => this.#relieve(step.bytes))
      case 'change':
        return void Object.assign(this.#live(step.revision) ?? {}, step)
      case 'retire': {
        const isolate = this.#live(step.revision)
        if (isolate !== undefined) this.#retired.add(isolate)
        this.#pinned.delete(step.revision)
        return this.#nobodyLeaves(() => this.pool.retire(step.revision))
      }
      case 'pin':
        this.#pinned.add(step.revision)
        return this.pool.pin(step.revision)
      case 'lose':
        return this.#live(step.revision)?.dispose()
    }
  }

  get loaded(): FakeIsolate[] {
    return this.#made.filter(({ disposed }) => !disposed)
  }

  isInUse(one: FakeIsolate): boolean {
    return this.#leases.some(({ isolate }) => isolate === one)
  }

  isKept(one: FakeIsolate): boolean {
    return this.isInUse(one) || (this.#pinned.has(one.revision) && !this.#retired.has(one))
  }

  isRetired(one: FakeIsolate): boolean {
    return this.#retired.has(one)
  }

  #live(revision: string): FakeIsolate | undefined {
    return this.loaded.find((one) => one.revision === revision && !this.#retired.has(one))
  }

  /** Nobody, that is, who is in use or pinned. */
  #nobodyLeaves(act: () => void): void {
    const kept = this.loaded.filter((one) => this.isKept(one))
    act()
    for (const one of kept) assert(!one.disposed, `${one.revision} was ended`)
  }

  #relieve(bytes: number): void {
    const before = this.loaded.filter((one) => !this.isKept(one))
    const { evicted, bytes: givenUp } = this.pool.relieve(bytes)
    const left = before.filter(({ disposed }) => disposed)
    const stayed = before.filter(({ disposed }) => !disposed)
    const bytesOf = (some: readonly FakeIsolate[]): number => some.reduce((sum, { heapBytes }) => sum + heapBytes, 0)
    assert.deepEqual({ evicted, givenUp }, { evicted: left.length, givenUp: bytesOf(left) })
    assert(givenUp >= bytes || stayed.length === 0, 'less than was asked for')
    const order = [...this.#used]
    // Those that are retired leave in the order in which they were: nobody uses them any more.
    const retired = [...this.#retired]
    const rank = (one: FakeIsolate): number =>
      (one.hasBackgroundWork ? 10_000 : 0) + (this.#retired.has(one) ? retired.indexOf(one) - 1_000 : order.indexOf(one))
    const last = left.toSorted((a, b) => rank(a) - rank(b)).at(-1)
    assert(last === undefined || bytesOf(left) - last.heapBytes < bytes, 'more than it takes')
    for (const one of stayed) assert(last === undefined || rank(last) < rank(one), `${last?.revision} before ${one.revision}`)
  }
}

t.test('whatever happens, those in use and pinned stay, the least used leave first, and the count is kept', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const rig = new Rig()
      for (const step of steps) {
        await rig.take(step)
        // What was loaded or retired settles in microtasks.
        await new Promise(setImmediate)
        const { loaded, pool } = rig
        const evictable = loaded.filter((one) => !rig.isKept(one))
        assert.equal(
          pool.evictableBytes,
          evictable.reduce((sum, { heapBytes }) => sum + heapBytes, 0),
        )
        const live = loaded.filter((one) => !rig.isRetired(one))
        const isFull = live.length > MAX_ISOLATES
        assert(!isFull || live.every((one) => rig.isKept(one)), 'more than the limit, though one could leave')
      }
    }),
    { numRuns: 300 },
  )
})
