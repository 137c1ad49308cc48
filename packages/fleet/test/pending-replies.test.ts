import { NO_USAGE, type Call, type InvocationResult } from '@carpool/core'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { PendingReplies } from '../src/pool/pending-replies.ts'

const ok = {
  outcome: 'ok',
  start: 'warm',
  usage: NO_USAGE,
  response: { status: 200, headers: [], body: new Uint8Array() },
} as const

/** Counts how often it is given back, as a real one would not. */
function slot(): { released: number; release(): void; streams(): void; end(): void } {
  const one = { released: 0, release: () => void one.released++, streams: () => {}, end: () => void one.released++ }
  return one
}

interface Expected {
  readonly number: number
  readonly result: Promise<InvocationResult>
}

/** What a host owes, with a promise for how each call ends. */
class Replies extends PendingReplies {
  readonly #ends: Map<Call, (result: InvocationResult) => void>

  constructor(readyBy: number) {
    const ends = new Map<Call, (result: InvocationResult) => void>()
    super(readyBy, (call, result) => ends.get(call)?.(result))
    this.#ends = ends
  }

  expect(overdueAtMs: number, functionName = 'f', held = slot()): Expected {
    const call = routedCall(functionName)
    call.slot = held
    const result = new Promise<InvocationResult>((resolve) => this.#ends.set(call, resolve))
    this.expectAnswer(call, overdueAtMs)
    return { number: call.number, result }
  }
}

t.test('a slot is given back by the wait or by the end, and by the loss of the host', async (t) => {
  const pending = new Replies(1000)
  const slots = [slot(), slot(), slot(), slot()] as const
  const [answered, waiting] = slots.slice(0, 3).map((one) => pending.expect(50, 'f', one).number) as [number, number]
  pending.answer(answered, ok)
  pending.waits(waiting)
  pending.waits(999)
  t.same(
    slots.map(({ released }) => released),
    [1, 1, 0, 0],
  )
  pending.lose(() => undefined)
  void pending.expect(50, 'f', slots[3])
  t.ok(slots.every(({ released }) => released >= 1))
})

t.test('an answer goes to the call with its number, once; others are dropped', async (t) => {
  const pending = new Replies(1000)
  const { number: first, result: firstResult } = pending.expect(50)
  const { number: second } = pending.expect(50)
  pending.answer(999, ok)
  pending.answer(first, ok)
  pending.answer(first, { outcome: 'timeout', start: 'warm', usage: NO_USAGE, detail: 'late' })
  t.equal((await firstResult).outcome, 'ok')
  t.equal(pending.inFlight, 1)
  t.not(first, second)
})

t.test('a lost host answers everything at once, and whatever comes later', async (t) => {
  const pending = new Replies(1000)
  const { result } = pending.expect(50)
  const started = pending.expectStarted('r', 50)
  const codeCache = pending.expectCodeCache('r', 50)
  pending.lose(() => undefined)
  t.equal((await result).outcome, 'host-lost')
  t.match(await started, { ok: false })
  t.equal(await codeCache, undefined)
  t.equal((await pending.expect(50).result).outcome, 'host-lost')
  await t.rejects(pending.untilReady, { code: 'no-host' })
})

t.test('a reply that is due makes the host overdue, and its coming makes up for it', async (t) => {
  const pending = new Replies(100)
  t.notOk(pending.isOverdue(99))
  t.ok(pending.isOverdue(100), 'it should be ready by now')
  pending.ready()
  t.notOk(pending.isOverdue(100))
  const { number } = pending.expect(200)
  void pending.expectStarted('r', 300)
  t.notOk(pending.isOverdue(199))
  t.ok(pending.isOverdue(200))
  pending.answer(number, ok)
  t.notOk(pending.isOverdue(299))
  t.ok(pending.isOverdue(300))
  pending.started('r', { ok: true, form: 'fetch' })
  t.notOk(pending.isOverdue(1e9))
})

t.test('of several calls the earliest makes the host overdue, as far as its time is now', async (t) => {
  const pending = new Replies(100)
  pending.ready()
  const first = pending.expect(200)
  const second = pending.expect(300)
  const third = pending.expect(400)
  t.notOk(pending.isOverdue(199))
  pending.answer(first.number, ok)
  t.notOk(pending.isOverdue(299))
  t.ok(pending.isOverdue(300))
  pending.dueBy(pending.callOf(second.number)!, 500)
  t.notOk(pending.isOverdue(399), 'it has longer now')
  pending.dueBy(pending.callOf(third.number)!, 350)
  t.notOk(pending.isOverdue(349))
  t.ok(pending.isOverdue(350), 'and it has less')
  pending.answer(third.number, ok)
  pending.dueBy(pending.callOf(second.number)!, Number.POSITIVE_INFINITY)
  t.notOk(pending.isOverdue(1e9))
})

t.test('starts of one revision are answered in order', async (t) => {
  const pending = new Replies(100)
  const both = [pending.expectStarted('r', 50), pending.expectStarted('r', 50)]
  pending.started('r', { ok: true, form: 'fetch' })
  pending.started('r', { ok: true, form: 'lambda' })
  pending.started('r', { ok: true, form: 'fetch' })
  t.strictSame(await Promise.all(both), [
    { ok: true, form: 'fetch' },
    { ok: true, form: 'lambda' },
  ])
})

t.test('who may have brought the host down is answered when it is known how it ended, the others at once', async (t) => {
  const pending = new Replies(1000)
  const { result: near } = pending.expect(50, 'near')
  const { result: evil } = pending.expect(50, 'evil')
  const crash = Promise.withResolvers<boolean>()
  pending.lose((functionName) => (functionName === 'evil' ? crash.promise : undefined))
  t.match(await near, { outcome: 'host-lost', isSuspect: false })
  crash.resolve(true)
  t.match(await evil, { outcome: 'host-lost', isSuspect: true })
})

t.test('a call that was taken back waits for nothing there any more, and what comes of it is dropped', async (t) => {
  const pending = new Replies(1000)
  const held = slot()
  const first = pending.expect(50)
  const later = [pending.expect(50, 'f', held), pending.expect(50)]
  t.same(
    pending.numbersAfter(first.number),
    later.map(({ number }) => number),
  )
  const call = pending.takeBack(later[0]!.number)
  t.equal(call?.number, later[0]!.number)
  t.equal(call?.holder, undefined)
  t.equal(held.released, 1)
  t.equal(pending.inFlight, 2)
  t.equal(pending.takeBack(later[0]!.number), undefined, 'once')
  pending.answer(later[0]!.number, ok)
  pending.lose(() => undefined)
  t.equal((await first.result).outcome, 'host-lost')
  t.equal((await later[1]!.result).outcome, 'host-lost')
})
