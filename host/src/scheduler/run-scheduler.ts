import { FairOrder, Flow, type Holder } from '@carpool/core'
import { RunDelayHistogram } from '@carpool/wire'
import type { Batch, BatchCost } from './batch.ts'
import { Permits, type PermitRequest } from './permits.ts'

/** An isolate that can be suspended in the middle of its work. */
export interface Suspendable {
  /** @returns false if it cannot be suspended */
  suspend(): boolean
  resume(): void
  /** Leaves most of the cores to others. */
  setAffinity(): void
  clearAffinity(): void
  /** Has whatever wakes up run at once, and not when the system next looks who is to run. */
  lengthenTurns(): void
}

/** What the scheduler needs of a guest. */
export interface Runnable {
  readonly isolate: Suspendable
  readonly queue: {
    releasePermit(): void
    readonly cost: Pick<BatchCost, 'mostMs'>
  }
  readMessages(): void
  /** Brings the CPU times of the batch up to date. */
  measure(batch: Batch): void
}

/** A batch that is suspended. */
interface Suspension {
  readonly isolate: Suspendable
  /** CPU time that the batch had used when it was suspended. */
  readonly usedNs: number
  /** For how long the batch had been suspended before, in ms. */
  readonly suspendedMs: number
  /** On the monotonic clock, in ms. */
  readonly sinceMs: number
}

/** The batches of one function that are suspended, in the order in which they were. */
class SuspendedBatches extends Flow {
  readonly batches = new Map<Batch, Suspension>()
}

export interface RunSchedulerOptions<G extends Runnable> {
  /** Isolates that may be entered at the same time with a permit. */
  readonly permits: number
  /** Batches that may run at the same time once their first slice is over. */
  readonly longBatches: number
  /** CPU time of the first slice, in ms. */
  readonly firstSliceMs: number
  /** A batch has come to run for long (1), or such a batch has ended (-1). */
  readonly onLong: (guest: G, change: 1 | -1) => void
  /** Called every {@link CHECK_MS} for each batch that runs, when it was measured. */
  readonly onCheck: (guest: G, batch: Batch) => void
}

/**
 * How often running batches are checked, in ms: how exactly limits are kept, and how long messages wait while an entry goes on.
 */
const CHECK_MS = 10
/** While others wait for permits, it is looked this often who can give one up, in ms, */
const CROWDED_CHECK_MS = 3
/** and the first slice of what takes longer than usual is so many times what is usual, */
const CROWDED_FACTOR = 1.5
/** at least this much, in ms of CPU. */
const CROWDED_SLICE_MS = 3
/** A batch that uses no CPU gives its permit up after so many slices: it waits for something, or its thread is parked. */
const IDLE_SLICES = 10
/** From here on a batch is long, in ms of CPU: on a busy machine the shortest entry takes long by the clock. */
const LONG_ENTRY_MS = 20
/** Length of later slices, in ms: long against what it costs to change over, short against what people notice. */
export const TIME_SLICE_MS = 30
/** Of one function, a batch that was suspended for so long is the next, however much CPU time it has had, in ms. */
const MAX_SUSPENDED_MS = 1_000
/** Who comes to time slices has so much CPU time before it takes turns, in ms: what needs little more need not wait for all. */
const HEAD_START_MS = 300
/** A batch that uses this much CPU time while it is suspended is in something that V8 does not interrupt, in ns. */
const UNSTOPPABLE_NS = 20e6

/**
 * Decides which batches run: a multilevel feedback queue (Corbató et al., AFIPS 1962) of two levels. The order within one isolate
 * is that of its entry queue.
 *
 * First, a batch needs a permit. A few isolates may be entered at a time: more would not run sooner, and each of their threads
 * would take its share of the event loop's. They come in fair order ({@link Permits}). With three hundred functions waiting, one
 * that needs 20 µs does not wait for a hundred that need 10 ms each, and one that always asks gets no more than its share.
 *
 * While others wait for a permit, the first slice is hardly longer than what is usual of the function, and short for one of which
 * nothing is known or that would not be done in a whole one: twenty endless loops that begin together would else keep everybody
 * waiting for a whole slice of each.
 *
 * A batch that has used up its first slice releases its permit and goes on in time slices, as many batches at a time as there are
 * cores. Slices are shared out in the same way, between owners and then between functions; of one function the batch goes first
 * that has had the least. The system would give each of their threads the same share as that of an entry which needs 5 ms, and as
 * the host's own: with twenty endless loops, a twentieth. What cannot be suspended, such as a built-in that runs for long, is
 * limited to a few of the cores.
 */
export class RunScheduler<G extends Runnable> {
  /** How long entries waited until they ran. */
  readonly runDelay = new RunDelayHistogram()
  /** How long batches waited for a permit and for a core. */
  readonly sharedDelay = new RunDelayHistogram()
  readonly #options: RunSchedulerOptions<G>
  readonly #permits: Permits
  /** The batches that have begun and not ended, with or without a permit. */
  readonly #entered = new Map<G, Batch>()
  /**
   * Of those past their first slice: since when each runs, on the monotonic clock, in ms, in the order in which they began to;
   */
  readonly #running = new Map<Batch, number>()
  /** and those that are suspended, in the order in which they were. */
  readonly #suspended = new Map<Batch, Suspension>()
  readonly #sliceOrder = new FairOrder((holder) => new SuspendedBatches(holder), { headStart: HEAD_START_MS })
  #timer: NodeJS.Timeout | undefined
  #crowdedTimer: NodeJS.Timeout | undefined

  constructor(options: RunSchedulerOptions<G>) {
    this.#options = options
    this.#permits = new Permits(options.permits)
  }

  /** Requests that wait for a permit. */
  get waiting(): number {
    return this.#permits.waiting
  }

  /** Calls `begin` with a permit: at once if there is one, else in its order. */
  request(request: PermitRequest): void {
    this.#permits.request(request)
    if (this.waiting > 0) this.#crowdedTimer ??= setTimeout(() => this.checkCrowded(), CROWDED_CHECK_MS).unref()
  }

  /** They have had so much of the CPU besides what was expected, in ms. */
  used(holder: Holder, ms: number): void {
    this.#permits.used(holder, ms)
  }

  /** To be called when the isolate is about to be entered. */
  began(guest: G, batch: Batch): void {
    this.#entered.set(guest, batch)
    this.#timer ??= setInterval(() => this.check(), CHECK_MS)
  }

  /** To be called when nothing runs in the isolate any more, and it is charged. */
  ended(guest: G, batch: Batch): void {
    this.#entered.delete(guest)
    if (batch.isLong) this.#options.onLong(guest, -1)
    this.endSlices(batch)
  }

  /** Guests that are entered. */
  get entered(): Iterable<G> {
    return this.#entered.keys()
  }

  get enteredCount(): number {
    return this.#entered.size
  }

  /** Measures all running batches. */
  measure(): void {
    // What runs on in an isolate that was disposed is charged to nobody.
    for (const [guest, batch] of this.#entered) if (!batch.isEnded) guest.measure(batch)
  }

  /** Reads the messages of all entered guests, measures their batches, and checks each. */
  check(): void {
    if (this.#entered.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    // One that does not end must hold up no answer that is there by now.
    for (const guest of this.#entered.keys()) guest.readMessages()
    this.measure()
    const { firstSliceMs, onLong, onCheck } = this.#options
    for (const [guest, batch] of this.#entered) {
      const usedMs = batch.totalNs / 1e6
      if (usedMs >= LONG_ENTRY_MS && !batch.isLong) {
        batch.isLong = true
        onLong(guest, 1)
      }
      if (usedMs >= firstSliceMs || this.#isSliced(batch)) this.slice(guest.isolate, batch)
      if (usedMs >= firstSliceMs || performance.now() - batch.beganAtMs >= IDLE_SLICES * firstSliceMs) guest.queue.releasePermit()
      onCheck(guest, batch)
    }
  }

  /** While others wait, has those give up their permits that have used more than is usual of them, or need no core. */
  checkCrowded(nowMs = performance.now()): void {
    clearTimeout(this.#crowdedTimer)
    this.#crowdedTimer = undefined
    if (this.waiting === 0) return
    for (const [guest, batch] of this.#entered) {
      if (batch.isEnded || this.#isSliced(batch) || nowMs - batch.beganAtMs < CROWDED_CHECK_MS) continue
      guest.measure(batch)
      if (batch.totalNs / 1e6 >= this.#crowdedSliceMs(guest.queue.cost.mostMs)) this.slice(guest.isolate, batch, nowMs)
      // One that waits for the host needs no core.
      else if (!batch.wasBlocked) continue
      guest.queue.releasePermit()
    }
    if (this.waiting > 0) this.#crowdedTimer ??= setTimeout(() => this.checkCrowded(), CROWDED_CHECK_MS).unref()
  }

  #crowdedSliceMs(mostMs: number): number {
    const { firstSliceMs } = this.#options
    // What does not fit into a first slice anyway need not have a whole one.
    return mostMs > firstSliceMs ? CROWDED_SLICE_MS : Math.min(firstSliceMs, Math.max(CROWDED_SLICE_MS, mostMs * CROWDED_FACTOR))
  }

  #isSliced(batch: Batch): boolean {
    return this.#running.has(batch) || this.#suspended.has(batch)
  }

  /**
   * To be called at each check of a batch whose first slice is over. A batch whose slice is over is suspended, and the next goes
   * on.
   */
  slice(isolate: Suspendable, batch: Batch, nowMs = performance.now()): void {
    if (batch.isEnded) return
    isolate.lengthenTurns()
    const suspension = this.#suspended.get(batch)
    if (suspension !== undefined) {
      countSuspended(batch, suspension, nowMs)
      if (batch.totalNs - suspension.usedNs >= UNSTOPPABLE_NS) isolate.setAffinity()
    } else if (!this.#running.has(batch)) {
      this.#running.set(batch, nowMs)
      if (this.#running.size > this.#options.longBatches) this.#suspend(isolate, batch, nowMs)
    } else if (this.#isSliceOver(batch, nowMs)) {
      this.#endSlice(batch, nowMs)
      if (this.#isNext(batch)) return void this.#running.set(batch, nowMs)
      this.#suspend(isolate, batch, nowMs)
      this.#resumeNext(nowMs)
    }
  }

  /**
   * The batch has ended, or its isolate was disposed: it is resumed if it was suspended, and the next goes on. Harmless for one
   * that was never sliced.
   */
  endSlices(batch: Batch, nowMs = performance.now()): void {
    const suspension = this.#suspended.get(batch)
    if (suspension !== undefined) this.#resume(batch, suspension, nowMs)
    if (this.#endSlice(batch, nowMs)) this.#resumeNext(nowMs)
    if (this.#running.size === 0 && this.#suspended.size === 0) this.#sliceOrder.reset()
  }

  /** Its slice began first and has lasted, and another waits that was not suspended just now, in exchange for a third. */
  #isSliceOver(batch: Batch, nowMs: number): boolean {
    const [first] = this.#running
    const [oldest] = this.#suspended.values()
    if (first?.[0] !== batch || oldest === undefined) return false
    return nowMs - first[1] >= TIME_SLICE_MS && nowMs - oldest.sinceMs >= TIME_SLICE_MS
  }

  /** Its owner and function have had the time for which it ran, whatever it used of it. @returns whether it ran */
  #endSlice(batch: Batch, nowMs: number): boolean {
    const sinceMs = this.#running.get(batch)
    if (sinceMs === undefined) return false
    this.#running.delete(batch)
    this.#sliceOrder.charge(batch.holder, nowMs - sinceMs)
    return true
  }

  /** Whether the next slice would be that of a batch that is in none and not suspended: then it just goes on. */
  #isNext({ holder }: Batch): boolean {
    const flow = this.#sliceOrder.wait(holder)
    if (flow.batches.size > 0) return false
    const isNext = this.#sliceOrder.first() === flow
    this.#sliceOrder.rest(flow)
    return isNext
  }

  #suspend(isolate: Suspendable, batch: Batch, nowMs: number): void {
    this.#endSlice(batch, nowMs)
    // What cannot be suspended takes no slice from those that can.
    if (!isolate.suspend()) return
    batch.wasBlocked = true
    const suspension = { isolate, usedNs: batch.totalNs, suspendedMs: batch.suspendedMs, sinceMs: nowMs }
    this.#suspended.set(batch, suspension)
    this.#sliceOrder.wait(batch.holder).batches.set(batch, suspension)
  }

  #resumeNext(nowMs: number): void {
    if (this.#running.size >= this.#options.longBatches) return
    const next = this.#sliceOrder.first()
    if (next === undefined) return
    const [batch, suspension] = nextOf(next.batches, nowMs)
    this.#running.set(batch, nowMs)
    suspension.isolate.clearAffinity()
    this.#resume(batch, suspension, nowMs)
  }

  #resume(batch: Batch, suspension: Suspension, nowMs: number): void {
    this.#suspended.delete(batch)
    const flow = this.#sliceOrder.wait(batch.holder)
    flow.batches.delete(batch)
    if (flow.batches.size === 0) this.#sliceOrder.rest(flow)
    countSuspended(batch, suspension, nowMs)
    suspension.isolate.resume()
  }
}

/**
 * Of one function the next is the batch with the least CPU time, so that one that needs hardly more than a slice need not wait
 * for all the endless ones.
 */
function nextOf(batches: ReadonlyMap<Batch, Suspension>, nowMs: number): readonly [Batch, Suspension] {
  const [oldest] = batches
  let next = oldest!
  if (nowMs - next[1].sinceMs >= MAX_SUSPENDED_MS) return next
  for (const one of batches) if (one[0].totalNs < next[0].totalNs) next = one
  return next
}

function countSuspended(batch: Batch, { suspendedMs, sinceMs }: Suspension, nowMs: number): void {
  batch.suspendedMs = suspendedMs + nowMs - sinceMs
}
