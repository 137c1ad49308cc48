import fc from 'fast-check'
import t from 'tap'
import { Account } from '../src/accounting/account.ts'
import { Batch } from '../src/scheduler/batch.ts'
import type { Permit, PermitRequest } from '../src/scheduler/permits.ts'
import { TIME_SLICE_MS, type Runnable, type RunScheduler, type Suspendable } from '../src/scheduler/run-scheduler.ts'
import { schedulerOf } from './support/fake-isolate.ts'

/** A guest of a function of the same owner as all others. */
function guestOf(functionName: string, owner = 'o'): PermitRequest['guest'] {
  return { holder: { owner, functionName } }
}

t.test('no more permits are given than there are, and all who ask get one in the end, each guest in its own order', async () => {
  const guests = { a: guestOf('a'), b: guestOf('b'), c: guestOf('c') }
  const step = fc.oneof(fc.constant('leave'), fc.constantFrom('a', 'b', 'c'))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 200, size: 'max' }), (permits, steps) => {
      const scheduler = schedulerOf(permits)
      const inside: Permit[] = []
      const order: Array<readonly [string, number]> = []
      let asked = 0
      for (const name of steps) {
        const number = asked
        if (name === 'leave') inside.shift()?.release()
        else {
          asked++
          scheduler.request({
            guest: guests[name as 'a'],
            costMs: 1,
            begin: (permit) => {
              order.push([name, number])
              inside.push(permit)
            },
          })
        }
        if (inside.length > permits) return false
        if (inside.length < permits && scheduler.waiting > 0) return false
      }
      while (inside.length > 0) inside.shift()!.release()
      const isInOrder = ['a', 'b', 'c'].every((name) => {
        const numbers = order.filter(([one]) => one === name).map(([, number]) => number)
        return numbers.every((number, index) => index === 0 || numbers[index - 1]! < number)
      })
      return scheduler.waiting === 0 && order.length === asked && isInOrder
    }),
  )
})

t.test('who needs little does not wait for a round of those who need much', async (t) => {
  const scheduler = schedulerOf(1)
  let last: Permit | undefined
  const order: string[] = []
  const enter = (name: string, costMs: number): void => {
    scheduler.request({
      guest: guestOf(name),
      costMs,
      begin: (permit) => {
        order.push(name)
        last = permit
      },
    })
  }
  for (let guest = 0; guest < 300; guest++) enter(`hog ${guest}`, 10)
  for (let round = 0; round < 20; round++) {
    // Who leaves asks again, as one does that has more work.
    const latest = order.at(-1)!
    last?.release()
    if (latest !== 'quiet') enter(latest, 10)
  }
  const before = order.length
  for (let call = 0; call < 10; call++) {
    enter('quiet', 0.02)
    for (let round = 0; round < 3; round++) last?.release()
  }
  t.ok(order.slice(before).filter((name) => name === 'quiet').length >= 9)
})

/** Has each function ask again before it leaves, so that all of them always wait. @returns how often each was served */
function serveAll(
  scheduler: Pick<RunScheduler<never>, 'request'>,
  costsMs: Readonly<Record<string, number>>,
  calls: number,
  onBegin: (guest: PermitRequest['guest']) => void = () => {},
): Record<string, number> {
  const served: Record<string, number> = {}
  const taken: Permit[] = []
  let left = calls
  const enter = (name: string, guest: PermitRequest['guest']): void =>
    scheduler.request({
      guest,
      costMs: costsMs[name]!,
      begin: (permit) => {
        served[name] = (served[name] ?? 0) + 1
        if (left-- <= 0) return
        enter(name, guest)
        taken.push(permit)
        onBegin(guest)
      },
    })
  for (const name of Object.keys(costsMs)) enter(name, guestOf(name))
  while (taken.length > 0) taken.shift()!.release()
  return served
}

t.test('who always asks gets no more than its share', async (t) => {
  const served = serveAll(schedulerOf(1), { large: 10, small: 1 }, 2_000)
  const [smallMs, largeMs] = [served['small']!, served['large']! * 10]
  t.ok(Math.abs(smallMs - largeMs) <= 20, `${smallMs} and ${largeMs}`)
})

t.test('what is used besides takes from the share as well', async (t) => {
  const scheduler = schedulerOf(1)
  // Each batch of one leaves garbage.
  const served = serveAll(scheduler, { messy: 1, tidy: 1 }, 2_200, ({ holder }) => {
    if (holder.functionName === 'messy') scheduler.used(holder, 9)
  })
  t.ok(Math.abs(served['tidy']! / served['messy']! - 10) <= 1, `${served['tidy']} and ${served['messy']}`)
})

t.test('a permit that is released twice is one permit', async (t) => {
  const scheduler = schedulerOf(1)
  const taken: Permit[] = []
  for (let count = 0; count < 3; count++) {
    scheduler.request({ guest: guestOf(`f${count}`), costMs: 1, begin: (permit) => void taken.push(permit) })
  }
  taken[0]!.release()
  taken[0]!.release()
  t.same([taken.length, scheduler.waiting], [2, 1])
})

t.test('many who leave at once do not fill the stack', async (t) => {
  const scheduler = schedulerOf(1)
  let first: Permit | undefined
  scheduler.request({ guest: guestOf('first'), costMs: 1, begin: (permit) => (first = permit) })
  let left = 0
  for (let count = 0; count < 2_000; count++) {
    scheduler.request({
      guest: guestOf(`f${count}`),
      costMs: 1,
      begin: (permit) => {
        left++
        permit.release()
      },
    })
  }
  first?.release()
  t.same([left, scheduler.waiting], [2_000, 0])
})

class Sleeper implements Suspendable {
  isSuspended = false
  hasAffinity = false
  hasLongTurns = false
  readonly canSuspend: boolean

  constructor(canSuspend = true) {
    this.canSuspend = canSuspend
  }

  suspend(): boolean {
    this.isSuspended = this.canSuspend
    return this.canSuspend
  }

  resume(): void {
    this.isSuspended = false
  }

  setAffinity(): void {
    this.hasAffinity = true
  }

  clearAffinity(): void {
    this.hasAffinity = false
  }

  lengthenTurns(): void {
    this.hasLongTurns = true
  }
}

t.test('no more long batches run than may, all get the same time, and one that ends makes room', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), (longBatches, ends) => {
      const scheduler = schedulerOf(1, longBatches)
      const all = ends.map((endsEarly) => ({ endsEarly, batch: new Batch([new Account()], 0), guest: new Sleeper(), ranMs: 0 }))
      const checks = 40 * all.length
      let isRight = true
      for (let check = 0; check < checks; check++) {
        const nowMs = check * 10
        const left = all.filter(({ endsEarly }) => !endsEarly || check < checks / 4)
        for (const { batch } of all) if (!left.some((one) => one.batch === batch)) scheduler.endSlices(batch, nowMs)
        for (const { batch, guest } of left) scheduler.slice(guest, batch, nowMs)
        const running = left.filter(({ guest }) => !guest.isSuspended)
        isRight &&= running.length === Math.min(longBatches, left.length)
        for (const one of running) one.batch.measured([(one.ranMs += 10) * 1e6])
      }
      const lasting = all.filter(({ endsEarly }) => !endsEarly).map(({ ranMs }) => ranMs)
      const spreadMs = lasting.length === 0 ? 0 : Math.max(...lasting) - Math.min(...lasting)
      return isRight && spreadMs <= 3 * TIME_SLICE_MS + 0.1 * Math.max(0, ...lasting)
    }),
  )
})

t.test('what cannot be suspended runs on, and the others go on in slices beside it', async (t) => {
  const scheduler = schedulerOf(1, 1)
  const stuck = new Sleeper(false)
  const batches = [new Batch([], 0), new Batch([], 0), new Batch([], 0)] as const
  const [first, second] = [new Sleeper(), new Sleeper()]
  const check = (nowMs: number): void => {
    scheduler.slice(stuck, batches[0], nowMs)
    scheduler.slice(first, batches[1], nowMs)
    scheduler.slice(second, batches[2], nowMs)
  }
  check(0)
  t.same([stuck.isSuspended, first.isSuspended, second.isSuspended], [false, true, true])
  check(TIME_SLICE_MS)
  t.same([first.isSuspended, second.isSuspended], [false, true])
  check(2 * TIME_SLICE_MS)
  t.same([first.isSuspended, second.isSuspended], [true, false])
})

t.test('what is lost while it is suspended is resumed, to its end, and not suspended again', async (t) => {
  const scheduler = schedulerOf(1, 1)
  const [running, suspended] = [new Batch([], 0), new Batch([], 0)]
  const guest = new Sleeper()
  scheduler.slice(new Sleeper(), running, 0)
  scheduler.slice(guest, suspended, 0)
  t.ok(guest.isSuspended)
  t.ok(suspended.wasBlocked, 'the time in which it is suspended is no wait for a core')
  scheduler.slice(guest, suspended, 7)
  t.equal(suspended.suspendedMs, 7)
  suspended.endedAtMs = 10
  scheduler.endSlices(suspended, 10)
  scheduler.slice(guest, suspended, 20)
  t.notOk(guest.isSuspended)
})

t.test('what is suspended and uses CPU all the same is limited to few cores', async (t) => {
  const scheduler = schedulerOf(1, 1)
  const [running, suspended] = [new Batch([], 0), new Batch([new Account()], 0)]
  const guest = new Sleeper()
  scheduler.slice(new Sleeper(), running, 0)
  suspended.measured([50e6])
  scheduler.slice(guest, suspended, 0)
  scheduler.slice(guest, suspended, 10)
  t.notOk(guest.hasAffinity)
  suspended.measured([75e6])
  scheduler.slice(guest, suspended, 20)
  t.ok(guest.hasAffinity)
  scheduler.endSlices(running, 30)
  t.notOk(guest.hasAffinity, 'its slice is its own')
})

t.test('the batch with the least CPU time is the next, unless another was suspended for long', async (t) => {
  const scheduler = schedulerOf(1, 1)
  const used = (ms: number): Batch => {
    const batch = new Batch([new Account()], 0)
    batch.measured([ms * 1e6])
    return batch
  }
  const [running, long, short] = [used(500), used(400), used(11)]
  const guests = [new Sleeper(), new Sleeper(), new Sleeper()] as const
  const check = (nowMs: number): void => {
    for (const [index, batch] of [running, long, short].entries()) scheduler.slice(guests[index]!, batch, nowMs)
  }
  check(0)
  check(TIME_SLICE_MS)
  t.same(
    guests.map(({ isSuspended }) => isSuspended),
    [true, true, false],
  )
  check(1_000)
  t.same(
    guests.map(({ isSuspended }) => isSuspended),
    [true, false, true],
  )
})

t.test('permits go to owners first: twenty functions of one get no more CPU time than one of another', async (t) => {
  const scheduler = schedulerOf(1)
  const servedMs = { many: 0, one: 0 }
  const taken: Permit[] = []
  let left = 1_000
  const enter = (owner: 'many' | 'one', functionName: string, costMs: number): void =>
    scheduler.request({
      guest: guestOf(functionName, owner),
      costMs,
      begin: (permit) => {
        servedMs[owner] += costMs
        taken.push(permit)
        if (left-- > 0) enter(owner, functionName, costMs)
      },
    })
  for (let index = 0; index < 20; index++) enter('many', `many-${index}`, 2)
  enter('one', 'one', 3)
  while (taken.length > 0) taken.shift()!.release()
  // At the end each asks no more.
  t.ok(Math.abs(servedMs.many - servedMs.one) <= 50, `${servedMs.many} and ${servedMs.one} ms`)
})

t.test('whoever takes more than expected is charged what it took', async (t) => {
  const scheduler = schedulerOf(2)
  const order: string[] = []
  const taken: Permit[] = []
  const enter = (owner: string, functionName: string, costMs: number): void =>
    scheduler.request({
      guest: guestOf(functionName, owner),
      costMs,
      begin: (permit) => {
        order.push(owner)
        taken.push(permit)
      },
    })
  for (let index = 0; index < 20; index++) enter('many', `many-${index}`, 0.2)
  enter('one', 'one', 2)
  // Two were expected to cost nothing that others wait for, the others 4 ms together; each takes 3.
  while (!order.includes('one')) taken.shift()!.release(3)
  t.ok(order.length <= 5, `${order.length} went in, ${order.indexOf('one')} before it`)
})

t.test('time slices go to owners first, and then to their functions', async () => {
  const functions = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 2, maxLength: 4 })
  fc.assert(
    fc.property(functions, (functionsOf) => {
      const scheduler = schedulerOf(1, 1)
      const all = functionsOf.flatMap((count, owner) =>
        Array.from({ length: count }, (_, index) => ({
          owner,
          batch: new Batch([new Account()], 0, { owner: `o${owner}`, functionName: `o${owner}-${index}` }),
          guest: new Sleeper(),
          ranMs: 0,
        })),
      )
      const checks = 400 * functionsOf.length
      for (let check = 0; check < checks; check++) {
        for (const { batch, guest } of all) scheduler.slice(guest, batch, check * 10)
        for (const one of all) if (!one.guest.isSuspended) one.batch.measured([(one.ranMs += 10) * 1e6])
      }
      const shareMs = (checks * 10) / functionsOf.length
      return functionsOf.every((count, owner) => {
        const ofEach = all.filter((one) => one.owner === owner).map(({ ranMs }) => ranMs)
        const sumMs = ofEach.reduce((sum, ms) => sum + ms, 0)
        if (Math.abs(sumMs - shareMs) > 0.15 * shareMs) return false
        return ofEach.every((ms) => Math.abs(ms - shareMs / count) <= 0.15 * shareMs + 2 * TIME_SLICE_MS)
      })
    }),
    { numRuns: 50 },
  )
})

t.test('of two cores, an owner of one endless batch keeps one beside an owner of many', async (t) => {
  const scheduler = schedulerOf(1, 2)
  const batchOf = (owner: string, functionName: string) => ({
    batch: new Batch([new Account()], 0, guestOf(functionName, owner).holder),
    guest: new Sleeper(),
  })
  const one = batchOf('one', 'one')
  const all = [...Array.from({ length: 5 }, (_, index) => batchOf('many', `many-${index}`)), one]
  let ranMs = 0
  for (let check = 0; check < 1_000; check++) {
    for (const { batch, guest } of all) scheduler.slice(guest, batch, check * 10)
    if (!one.guest.isSuspended) ranMs += 10
  }
  t.ok(ranMs >= 8_500, `${ranMs} of 10000 ms`)
})

/** A guest of a function of its own in which one entry runs, once it has a permit. */
class Runner implements Runnable {
  readonly isolate = new Sleeper()
  readonly batch = new Batch([new Account()], 0)
  readonly queue: { cost: { mostMs: number }; releasePermit(): void }
  permit: Permit | undefined

  constructor(mostMs = 0) {
    this.queue = { cost: { mostMs }, releasePermit: () => this.permit?.release() }
  }

  ask(scheduler: ReturnType<typeof schedulerOf>, functionName: string): void {
    scheduler.request({
      guest: guestOf(functionName),
      costMs: 1,
      begin: (permit) => {
        this.permit = permit
        scheduler.began(this, this.batch)
      },
    })
  }

  used(ms: number): this {
    this.batch.measured([ms * 1e6])
    return this
  }

  readMessages(): void {}
  measure(): void {}
}

t.test('while others wait, what takes longer than usual gives its permit up, and sleeps if too much runs', async (t) => {
  const scheduler = schedulerOf(1, 1)
  const loops = Array.from({ length: 20 }, () => new Runner())
  const quiet = new Runner(5)
  for (const [index, loop] of loops.entries()) loop.ask(scheduler, `loop ${index}`)
  quiet.ask(scheduler, 'quiet')
  let checks = 0
  for (let nowMs = 4; quiet.permit === undefined && checks < 100; nowMs += 4, checks++) {
    for (const loop of loops) if (loop.permit !== undefined && !loop.isolate.isSuspended) loop.used(4)
    scheduler.checkCrowded(nowMs)
  }
  t.equal(checks, 20, 'each has had what is left to one of which nothing is known')
  t.equal(loops.filter(({ isolate }) => !isolate.isSuspended).length, 1)
  for (const runner of [...loops, quiet]) scheduler.ended(runner, runner.batch)
})

t.test('while others wait, what usually fits into a first slice has it, and what does not has a short one', async (t) => {
  for (const [mostMs, sliceMs] of [
    [1, 3],
    [4, 6],
    [8, 10],
    [10, 10],
    [30, 3],
  ] as const) {
    const scheduler = schedulerOf(1, 1)
    const [runner, next] = [new Runner(mostMs), new Runner()]
    runner.ask(scheduler, 'runner')
    next.ask(scheduler, 'next')
    runner.used(sliceMs - 0.1)
    scheduler.checkCrowded(100)
    t.equal(next.permit, undefined, `${mostMs} ms`)
    runner.used(sliceMs)
    scheduler.checkCrowded(200)
    t.not(next.permit, undefined, `${mostMs} ms`)
    for (const one of [runner, next]) scheduler.ended(one, one.batch)
  }
})

t.test('what takes no longer than usual keeps its permit, and so does all while nobody waits', async (t) => {
  const scheduler = schedulerOf(1, 1)
  const [alone, next, usual, last] = [new Runner(), new Runner(), new Runner(5), new Runner()]
  alone.ask(scheduler, 'alone')
  alone.used(8)
  scheduler.checkCrowded(8)
  usual.ask(scheduler, 'usual')
  t.equal(usual.permit, undefined, 'nobody has waited so far')
  scheduler.checkCrowded(9)
  t.not(usual.permit, undefined)
  next.ask(scheduler, 'next')
  usual.used(7)
  scheduler.checkCrowded(17)
  t.equal(next.permit, undefined)
  usual.used(8)
  scheduler.checkCrowded(18)
  t.not(next.permit, undefined)
  last.ask(scheduler, 'last')
  next.batch.wasBlocked = true
  scheduler.checkCrowded(22)
  t.not(last.permit, undefined, 'one that waits for the host needs no core')
  t.equal(next.isolate.isSuspended, false)
  for (const runner of [alone, next, usual, last]) scheduler.ended(runner, runner.batch)
})
