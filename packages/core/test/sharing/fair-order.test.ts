/** Shares are first those of owners and then those of their functions, whatever waits and whatever it costs. */
import fc from 'fast-check'
import t from 'tap'
import { FairOrder, Flow, type FairOrderOptions, type Holder } from '../../src/sharing/fair-order.ts'

class Line extends Flow {
  readonly costs: number[] = []
}

/** One server that serves in the order, one entry after the other. */
class Served {
  readonly order: FairOrder<Line>
  readonly ofOwner = new Map<string, number>()
  readonly ofFunction = new Map<string, number>()
  total = 0

  constructor(options: FairOrderOptions = {}) {
    this.order = new FairOrder((holder) => new Line(holder), options)
  }

  push(holder: Holder, cost: number): void {
    this.order.wait(holder, cost).costs.push(cost)
  }

  serve(canRun?: (flow: Line) => boolean): Line | undefined {
    const flow = this.order.first(canRun)
    const cost = flow?.costs.shift()
    if (flow === undefined || cost === undefined) return undefined
    this.order.charge(flow, cost)
    if (flow.costs.length === 0) this.order.rest(flow)
    else this.order.expect(flow, flow.costs[0]!)
    this.total += cost
    this.ofOwner.set(flow.owner, this.by(flow.owner) + cost)
    this.ofFunction.set(flow.functionName, (this.ofFunction.get(flow.functionName) ?? 0) + cost)
    return flow
  }

  by(owner: string): number {
    return this.ofOwner.get(owner) ?? 0
  }
}

const MAX_COST = 100
const cost = fc.double({ min: 0.1, max: MAX_COST, noNaN: true })
const orders = fc.constantFrom<FairOrderOptions>({}, { isShortFirst: true }, { headStart: 300 })
/** Owners, of functions, of what waits of each. */
const backlogs = fc.array(
  fc.array(fc.array(cost, { minLength: 15, maxLength: 30 }), { minLength: 1, maxLength: 20, size: 'max' }),
  { minLength: 2, maxLength: 5 },
)

function nameOf(owner: number, index: number): Holder {
  return { owner: `o${owner}`, functionName: `o${owner}-f${index}` }
}

t.test(
  'between owners that always wait, what is served differs by one entry of each, and between their functions too',
  async () => {
    fc.assert(
      fc.property(backlogs, orders, (owners, options) => {
        const served = new Served(options)
        for (const [owner, functions] of owners.entries()) {
          for (const [index, costs] of functions.entries()) for (const one of costs) served.push(nameOf(owner, index), one)
        }
        const left = (owner: number, index: number): number => served.order.find(nameOf(owner, index))?.costs.length ?? 0
        const isBusy = (): boolean => owners.every((functions, owner) => functions.every((_, index) => left(owner, index) > 1))
        while (isBusy()) {
          served.serve()
          const sums = owners.map((_, owner) => served.by(`o${owner}`))
          if (Math.max(...sums) - Math.min(...sums) > 2 * MAX_COST) return false
          for (const [owner, functions] of owners.entries()) {
            const ofEach = functions.map((_, index) => served.ofFunction.get(nameOf(owner, index).functionName) ?? 0)
            if (Math.max(...ofEach) - Math.min(...ofEach) > 2 * MAX_COST) return false
          }
        }
        return true
      }),
    )
  },
)

const visits = fc.array(fc.record({ owner: fc.nat(4), index: fc.nat(19), cost, count: fc.integer({ min: 1, max: 5 }) }), {
  minLength: 1,
  maxLength: 300,
  size: 'max',
})

t.test('whoever comes and goes, an owner that always wants gets its share but for a bounded lag', async () => {
  fc.assert(
    fc.property(visits, fc.integer({ min: 1, max: 20 }), cost, orders, (others, functions, own, options) => {
      const served = new Served(options)
      const competitors = new Set(others.map(({ owner }) => owner)).size
      const isServedNow = (): boolean => {
        for (let index = 0; index < functions; index++) {
          const holder = { owner: 'busy', functionName: `busy-${index}` }
          if ((served.order.find(holder)?.costs.length ?? 0) < 2) served.push(holder, own)
        }
        return served.serve() !== undefined
      }
      for (const { owner, index, cost: of, count } of others) {
        for (let one = 0; one < count; one++) served.push(nameOf(owner, index), of)
        for (let one = 0; one < 2; one++) if (!isServedNow()) return false
      }
      const lag = (competitors + 1) * (3 * MAX_COST + (options.headStart ?? 0))
      return served.by('busy') >= (served.total - lag) / (competitors + 1)
    }),
  )
})

t.test('within an owner, a function that always wants gets its share but for a bounded lag', async () => {
  fc.assert(
    fc.property(visits, cost, orders, (others, own, options) => {
      const served = new Served(options)
      const busy = { owner: 'one', functionName: 'busy' }
      const competitors = new Set(others.map(({ index }) => index)).size
      for (const { index, cost: of, count } of others) {
        for (let one = 0; one < count; one++) served.push({ owner: 'one', functionName: `f${index}` }, of)
        for (let one = 0; one < 2; one++) {
          if ((served.order.find(busy)?.costs.length ?? 0) < 2) served.push(busy, own)
          served.serve()
        }
      }
      const lag = (competitors + 1) * (3 * MAX_COST + (options.headStart ?? 0))
      return (served.ofFunction.get('busy') ?? 0) >= (served.total - lag) / (competitors + 1)
    }),
  )
})

t.test('an owner of twenty functions gets no more than an owner of one', async () => {
  fc.assert(
    fc.property(fc.array(cost, { minLength: 20, maxLength: 20 }), cost, orders, (costsOfMany, costOfOne, options) => {
      const served = new Served(options)
      for (let round = 0; round < 500; round++) {
        for (const [index, of] of costsOfMany.entries()) {
          const holder = { owner: 'many', functionName: `many-${index}` }
          if ((served.order.find(holder)?.costs.length ?? 0) < 2) served.push(holder, of)
        }
        const one = { owner: 'one', functionName: 'one' }
        if ((served.order.find(one)?.costs.length ?? 0) < 2) served.push(one, costOfOne)
        served.serve()
        if (served.by('many') > served.by('one') + 2 * MAX_COST) return false
      }
      return true
    }),
  )
})

t.test('owners of one function each are served as their functions would be if there were no owners', async () => {
  const step = fc.record({ function: fc.nat(5), cost, serves: fc.nat(2), blocked: fc.nat(7) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), orders, (steps, options) => {
      const [apart, together] = [new Served(options), new Served(options)]
      for (const { function: which, cost: of, serves, blocked } of steps) {
        apart.push({ owner: `o${which}`, functionName: `f${which}` }, of)
        together.push({ owner: 'o', functionName: `f${which}` }, of)
        const canRun = ({ functionName }: Line): boolean => functionName !== `f${blocked}`
        for (let one = 0; one < serves; one++) {
          if (apart.serve(canRun)?.functionName !== together.serve(canRun)?.functionName) return false
        }
      }
      return true
    }),
  )
})

t.test(
  'something is served whenever something that can run waits, and nobody who comes waits for more than a round',
  async () => {
    fc.assert(
      fc.property(visits, fc.subarray([0, 1, 2, 3, 4]), (all, blocked) => {
        const served = new Served()
        const canRun = ({ owner }: Line): boolean => !blocked.some((one) => owner === `o${one}`)
        for (const { owner, index, cost: of, count } of all) {
          for (let one = 0; one < count; one++) served.push(nameOf(owner, index), of)
          const waits = [...served.order.waitingByOwner()].flat()
          if ((served.serve(canRun) === undefined) !== !waits.some(canRun)) return false
        }
        const newcomer = { owner: 'o0', functionName: 'newcomer' }
        served.push(newcomer, 1)
        const before = served.total
        for (let flow = served.serve(); flow?.functionName !== 'newcomer'; flow = served.serve())
          if (flow === undefined) return false
        // At most one entry of each other function of its owner, and as much of each other owner.
        return served.total - before <= 5 * 22 * MAX_COST
      }),
    )
  },
)

t.test('who could not run for a while does not catch up on it', async (t) => {
  const served = new Served()
  for (let count = 0; count < 20; count++) {
    served.push({ owner: 'blocked', functionName: 'a' }, 1)
    served.push({ owner: 'free', functionName: 'b' }, 1)
  }
  for (let count = 0; count < 10; count++) t.equal(served.serve(({ owner }) => owner === 'free')?.owner, 'free')
  const next = Array.from({ length: 6 }, () => served.serve()?.owner)
  t.same(next, ['blocked', 'free', 'blocked', 'free', 'blocked', 'free'])
})

t.test('who comes back has a head start, once', async (t) => {
  const served = new Served({ headStart: 5 })
  const push = (owner: string, count: number): void => {
    for (let one = 0; one < count; one++) served.push({ owner, functionName: owner }, 1)
  }
  push('endless', 100)
  for (let count = 0; count < 50; count++) served.serve()
  push('newcomer', 20)
  const owners = Array.from({ length: 15 }, () => served.serve()?.owner)
  t.same(
    owners.slice(0, 5),
    Array.from({ length: 5 }, () => 'newcomer'),
  )
  const after = owners.slice(5).filter((owner) => owner === 'newcomer').length
  t.ok(after >= 4 && after <= 6, `${after} of the next ten`)
})

t.test('what is gone leaves nothing behind, of owners neither', async (t) => {
  const served = new Served()
  served.push({ owner: 'always', functionName: 'always' }, 5)
  for (let count = 0; count < 2_000; count++) {
    served.push({ owner: `once-${count}`, functionName: `once-${count}` }, 5)
    served.push({ owner: 'always', functionName: 'always' }, 5)
    served.serve()
    served.serve()
    if (served.order.remembered > 4) return t.fail(`${served.order.remembered} are remembered after ${count}`)
  }
  while (served.serve() !== undefined);
  t.equal(served.order.waiting, 0)
  served.order.reset()
  t.equal(served.order.remembered, 0)
})

t.test('whoever took more or less than it was charged is served as if that had been known', async (t) => {
  const order = new FairOrder((holder) => new Line(holder), { isShortFirst: true })
  const [large, small] = [nameOf(0, 0), nameOf(1, 0)]
  const took = { [large.functionName]: 9, [small.functionName]: 1 }
  const served = { [large.functionName]: 0, [small.functionName]: 0 }
  order.wait(large, 3)
  order.wait(small, 3)
  for (let round = 0; round < 1_000; round++) {
    const flow = order.first()!
    order.charge(flow, 3)
    order.adjust(flow, took[flow.functionName]! - 3)
    served[flow.functionName]! += took[flow.functionName]!
  }
  const [ofLarge, ofSmall] = [served[large.functionName]!, served[small.functionName]!]
  t.ok(Math.abs(ofLarge - ofSmall) <= 12, `${ofLarge} and ${ofSmall}`)
})
