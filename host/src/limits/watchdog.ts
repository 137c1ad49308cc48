import { climb, type FailedOutcome, type Reason } from '@carpool/core'
import type { ActiveInvocation } from '../calls/invocation.ts'
import type { Invocations } from '../calls/invocations.ts'
import { LoadFailure } from '../isolates/code-store.ts'
import type { Guest, GuestWatchdog } from '../isolates/guest.ts'
import type { IsolatePool } from '../isolates/isolate-pool.ts'
import type { Batch } from '../scheduler/batch.ts'
import type { RunScheduler } from '../scheduler/run-scheduler.ts'

/** No more than this is billed beyond a CPU limit, in ms. */
const BILLED_GRACE_MS = 50
/**
 * How long an answer may wait for the rest of its entry, in ms. Then the entry is charged so far, and the rest is background
 * work.
 */
const HOLD_MS = 5
/** A thread that uses so much CPU time in a disposed isolate is limited to few cores, in ms: what stops does so sooner. */
const AFFINITY_FROM_MS = 10
/** CPU time that a module scope may take, in ms: it often takes more than any call, and takes it once. */
const START_CPU_MS = 10_000
/** It gets no more than this, whatever the limit of invocations: a deploy waits for it, and others behind that. */
const START_CPU_MAX_MS = 30_000
/** The next isolate of a revision may be retired after so long, in ms, or after so many calls. */
const RETIRE_AGAIN_MS = 10_000
const RETIRE_AGAIN_INVOCATIONS = 20

export const BACKGROUND_ENDED = 'What the function did after its answers took too much CPU time, so its isolate was ended.'

export interface WatchdogParts {
  readonly invocations: Pick<Invocations, 'isolateLost'>
  readonly disposing: DisposingIsolates
  readonly scheduler: Pick<RunScheduler<Guest>, 'measure' | 'endSlices'>
  readonly pool: Pick<IsolatePool<Guest>, 'setAside'>
  /** The isolate was disposed in this batch, which is charged as far as it is billed. */
  readonly onDisposed: (batch: Batch) => void
  /** What ran in a guest harms the process for good. */
  readonly onPoisoned: (guest: Guest, why: 'stuck' | 'gave-up') => void
}

/**
 * Takes guests up the kill ladder when their entries pass their limits: a guest near a limit is retired, one at a limit is
 * disposed, and the calls in it are failed or begun again.
 */
export class Watchdog implements GuestWatchdog {
  readonly #parts: WatchdogParts
  /** When an isolate of a revision was last retired for what it held or used, in ms. */
  readonly #retiredAtMs = new Map<string, number>()

  constructor(parts: WatchdogParts) {
    this.#parts = parts
  }

  /** Called for a guest that is entered, when its batch was measured. */
  check(guest: Guest, batch: Batch): void {
    if (batch.endedAtMs !== undefined) return this.#checkDisposing(guest, batch, batch.endedAtMs)
    // V8 gives an isolate up without a word; its thread may take long to notice.
    if (guest.disposed) return this.#lost(guest, batch)
    // The time of others' slices is not its own. Invocations end at their wall limit all the same.
    const ranMs = performance.now() - batch.beganAtMs - batch.suspendedMs
    const { current } = batch
    const isBackground = isLimitedByEntry(guest, batch)
    const { rung, reason } = climb(batch.rung, {
      of: 'entry',
      cpuMs: (isBackground ? batch.currentNs : current.cpuNs + batch.unchargedNs(current)) / 1e6,
      ranMs,
      // To measure its memory is not its doing, and ends by itself.
      cpuLimitMs: current === guest.memoryAccount ? Number.POSITIVE_INFINITY : cpuLimitMs(guest),
      wallLimitMs: current === guest.memoryAccount ? Number.POSITIVE_INFINITY : guest.limits.wallMs,
    })
    batch.rung = rung
    if (rung === 'ended') return this.end(guest, reason ?? 'cpu')
    if (reason !== undefined) this.retire(guest)
    // Only now: nobody is charged more than the limits have it.
    if (ranMs >= HOLD_MS && guest.queue.hasWaiters) guest.queue.chargeEarly()
  }

  end(guest: Guest, why: Reason): void {
    const { batch } = guest
    if (batch === undefined || batch.isEnded || guest.disposed) return
    const limitMs = cpuLimitMs(guest)
    const [outcome, detail] =
      why === 'cpu'
        ? (['cpu-exceeded', `More CPU time than the limit of ${limitMs} ms.`] as const)
        : (['timeout', `No answer within the wall limit of ${guest.limits.wallMs} ms.`] as const)
    this.#lose(guest, batch, outcome, detail)
  }

  /** Background work takes too much: timers that start each other, say. */
  endBackground(guest: Guest): void {
    if (guest.disposed) return
    const { batch } = guest
    if (batch !== undefined && !batch.isEnded) return this.#lose(guest, batch, 'cpu-exceeded', BACKGROUND_ENDED, guest.background)
    guest.dispose()
    this.#parts.invocations.isolateLost(guest, guest.background, 'cpu-exceeded', () => BACKGROUND_ENDED)
  }

  /** V8 has parked the guest's thread for good, which it does when it has no memory left. */
  gaveUp(guest: Guest): void {
    const { batch } = guest
    if (batch === undefined) return this.#gaveUpWhileIdle(guest)
    if (batch.rung === 'poisoned') return
    guest.readMessages()
    this.#parts.scheduler.measure()
    if (!batch.isEnded) this.#loseToMemory(guest, batch)
    this.#climbDisposing(guest, batch, { cpuMs: undefined, endedMs: 0, gaveUp: true })
  }

  batchLost(guest: Guest, batch: Batch): void {
    this.#lost(guest, batch)
    this.#parts.disposing.left(batch)
  }

  /** The guest is near a limit: calls that come from now on get another isolate. What is in it goes on. */
  retire(guest: Guest): void {
    const nowMs = performance.now()
    // One that holds that much from its first calls on would get a new isolate at each measurement.
    const sinceLastMs = nowMs - (this.#retiredAtMs.get(guest.revision) ?? Number.NEGATIVE_INFINITY)
    if (sinceLastMs < RETIRE_AGAIN_MS && guest.invocations < RETIRE_AGAIN_INVOCATIONS) return
    if (this.#parts.pool.setAside(guest.revision, guest)) this.#retiredAtMs.set(guest.revision, nowMs)
  }

  /** The revision is out of service. */
  forget(revision: string): void {
    this.#retiredAtMs.delete(revision)
  }

  /** The isolate is gone in the middle of a batch. If we did not end it, V8 did, and it does so for memory only. */
  #lost(guest: Guest, batch: Batch): void {
    if (batch.isEnded) return
    this.#parts.scheduler.measure()
    if (guest.isOver) return this.#dispose(guest, batch)
    this.#loseToMemory(guest, batch)
  }

  /** V8 collects garbage also while nothing runs, and finds what the entries before have left. */
  lostWhileIdle(guest: Guest): void {
    guest.reachedMemoryLimit()
    guest.dispose()
    const detail = memoryDetail(guest)
    this.#parts.invocations.isolateLost(guest, guest.queue.lastRun ?? guest.background, 'memory-exceeded', () => detail)
  }

  /** Its thread was in it for something that is nobody's entry. Its revision would do the same in the next isolate. */
  #gaveUpWhileIdle(guest: Guest): void {
    if (!guest.isOver) this.lostWhileIdle(guest)
    this.#parts.disposing.harmed(guest.revision)
    this.#parts.onPoisoned(guest, 'gave-up')
  }

  #loseToMemory(guest: Guest, batch: Batch): void {
    guest.reachedMemoryLimit()
    // To measure the memory takes none: it was there before.
    const culprit = batch.current === guest.memoryAccount ? (guest.queue.lastRun ?? batch.current) : batch.current
    this.#lose(guest, batch, 'memory-exceeded', memoryDetail(guest), culprit)
  }

  #lose(guest: Guest, batch: Batch, outcome: FailedOutcome, detail: string, culprit = batch.current): void {
    // Answers that were given by now count.
    guest.readMessages()
    batch.cap(cpuLimitMs(guest) + BILLED_GRACE_MS, isLimitedByEntry(guest, batch))
    // Before calls are placed anew, or they would be placed here.
    this.#dispose(guest, batch)
    if (!guest.isLoaded) guest.endLoad(new LoadFailure(`In the module scope: ${detail}`, { outcome }))
    const detailOf = ({ limits }: ActiveInvocation): string =>
      outcome === 'timeout' ? `No answer within the wall limit of ${limits.wallMs} ms.` : detail
    this.#parts.invocations.isolateLost(guest, culprit, outcome, detailOf)
  }

  /** Disposes the isolate, unless it is. Its thread may need a core to leave it; what it used before does not count for that. */
  #dispose(guest: Guest, batch: Batch): void {
    // What it reads just while a part begins is nothing.
    batch.atEndNs = Math.max(batch.totalNs, guest.usedNs)
    guest.queue.chargeEarly()
    batch.endedAtMs = performance.now()
    batch.rung = 'ended'
    guest.dispose()
    this.#parts.disposing.add(guest.revision, batch)
    this.#parts.scheduler.endSlices(batch)
    this.#parts.onDisposed(batch)
  }

  /** The isolate was disposed, and its thread has not left it. */
  #checkDisposing(guest: Guest, batch: Batch, endedAtMs: number): void {
    if (batch.rung === 'poisoned') return
    const cpuMs = Math.max(0, guest.usedNs - batch.atEndNs) / 1e6
    if (cpuMs >= AFFINITY_FROM_MS) guest.isolate.setAffinity()
    this.#climbDisposing(guest, batch, { cpuMs, endedMs: performance.now() - endedAtMs, gaveUp: false })
  }

  #climbDisposing(guest: Guest, batch: Batch, evidence: { cpuMs: number | undefined; endedMs: number; gaveUp: boolean }): void {
    const { rung, reason } = climb(batch.rung, { of: 'disposed', ...evidence })
    batch.rung = rung
    if (rung !== 'poisoned') return
    this.#parts.disposing.stuck(guest.revision, batch)
    this.#parts.onPoisoned(guest, reason === 'gave-up' ? reason : 'stuck')
  }
}

function memoryDetail({ limits }: Guest): string {
  return `The isolate passed its memory limit of ${limits.memoryMb} MiB.`
}

/** Background work is limited entry by entry, for it has no end at which to begin again. */
function isLimitedByEntry({ background, shared, memoryAccount }: Guest, { current }: Batch): boolean {
  return current.open === background || current === shared || current === memoryAccount
}

/** A module scope has a limit of its own, unless that of invocations is higher. */
function cpuLimitMs({ isLoaded, limits }: Guest): number {
  return isLoaded ? limits.cpuMs : Math.min(Math.max(limits.cpuMs, START_CPU_MS), START_CPU_MAX_MS)
}

interface Disposing {
  readonly revision: string
  readonly untilGone: PromiseWithResolvers<void>
}

/**
 * Isolates that were disposed and whose threads have not left them yet. Until they have, their revision gets no new isolate here:
 * what could not be ended once would not be ended in the next one either, and take another core.
 */
export class DisposingIsolates {
  readonly #batches = new Map<Batch, Disposing>()
  /** Revisions that have harmed the process. */
  readonly #harmful = new Set<string>()

  /** The isolate was disposed in this batch. */
  add(revision: string, batch: Batch): void {
    this.#batches.set(batch, { revision, untilGone: Promise.withResolvers() })
  }

  /** The thread has left the isolate. */
  left(batch: Batch): void {
    this.#batches.get(batch)?.untilGone.resolve()
    this.#batches.delete(batch)
  }

  /** The revision has harmed the process. */
  harmed(revision: string): void {
    this.#harmful.add(revision)
  }

  /** The thread does not leave the isolate. */
  stuck(revision: string, batch: Batch): void {
    this.harmed(revision)
    this.left(batch)
  }

  /** Resolves when no thread is in a disposed isolate of the revision, with whether it may have a new one here. */
  async mayLoad(revision: string): Promise<boolean> {
    for (;;) {
      if (this.#harmful.has(revision)) return false
      const disposing = [...this.#batches.values()].find((one) => one.revision === revision)
      if (disposing === undefined) return true
      await disposing.untilGone.promise
    }
  }
}
