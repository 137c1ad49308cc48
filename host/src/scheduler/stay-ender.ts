import { climb, type Reason, type FailedOutcome } from '@carpool/core'
import type { Guest } from '../isolates/guest.ts'
import type { ActiveInvocation } from '../calls/invocation-table.ts'
import type { Invocations } from '../calls/invocations.ts'
import { LoadFailure } from '../isolates/load-failure.ts'
import type { Remains } from '../isolates/remains.ts'
import type { Stay } from './stay.ts'

/** No more than this is billed beyond a CPU limit, in ms. */
const BILLED_GRACE_MS = 50
/** How long an answer may wait for the rest of its entry, in ms. Then the entry is charged so far, and what comes is nobody's. */
const HOLD_MS = 5
/** What is left of an isolate is kept to a few cores when it has used so much more, in ms: what stops does so sooner. */
const CONFINED_FROM_MS = 10
/** CPU time that a module scope may take, in ms: it often takes more than any call, and takes it once. */
const START_CPU_MS = 10_000
/** It gets no more than this, whatever the limit of invocations: a deploy waits for it, and others behind that. */
const START_CPU_MAX_MS = 30_000

export const BACKGROUND_ENDED = 'What the function did after its answers took too much CPU time, so its isolate was ended.'

export interface StayEnderParts {
  readonly invocations: Pick<Invocations, 'lost'>
  readonly remains: Remains
  /** Brings what is known of all running stays up to date. */
  readonly updateStays: () => void
  /** A guest has lost its isolate. */
  readonly onLost: (stay: Stay) => void
  /** A guest is near a limit: others of its function should not get into it. */
  readonly onRetiring: (guest: Guest) => void
  /** What ran in a guest harms the process for good. */
  readonly onPoisoned: (guest: Guest, why: 'stuck' | 'gave-up') => void
}

/**
 * The watchdog of entries: takes guests up the kill ladder when their entries pass their limits, and sees to it that those who shared the isolate are told.
 */
export class StayEnder {
  readonly #parts: StayEnderParts

  constructor(parts: StayEnderParts) {
    this.#parts = parts
  }

  /** Looks at a guest that is entered. */
  look(guest: Guest, stay: Stay): void {
    if (stay.endedAtMs !== undefined) return this.#lookAtRemains(guest, stay, stay.endedAtMs)
    // V8 gives an isolate up without a word; its thread may take long to notice.
    if (guest.disposed) return this.lost(guest, stay)
    // What others have had is not its own time. Whoever waits for an answer is told at the wall limit all the same.
    const ranMs = performance.now() - stay.beganAtMs - stay.heldMs
    const { current } = stay
    const isNobodys = isLimitedByEntry(guest, stay)
    const { rung, reason } = climb(stay.rung, {
      of: 'entry',
      cpuMs: (isNobodys ? stay.turnNs : current.cpuNs + stay.unchargedNs(current)) / 1e6,
      ranMs,
      cpuLimitMs: current === guest.memoryAccount ? Number.POSITIVE_INFINITY : cpuLimitMs(guest),
      wallLimitMs: guest.limits.wallMs,
    })
    stay.rung = rung
    if (rung === 'ended') return this.end(guest, reason ?? 'cpu')
    if (reason !== undefined) this.#parts.onRetiring(guest)
    // Only now: nobody is charged more than the limits have it.
    if (ranMs >= HOLD_MS && guest.queue.someoneWaits) guest.queue.chargeEarly()
  }

  end(guest: Guest, why: Reason): void {
    const { stay } = guest
    if (stay === undefined || stay.isEnded || guest.disposed) return
    const limitMs = cpuLimitMs(guest)
    const [outcome, detail] =
      why === 'cpu'
        ? (['cpu-exceeded', `More CPU time than the limit of ${limitMs} ms.`] as const)
        : (['timeout', `No answer within the wall limit of ${guest.limits.wallMs} ms.`] as const)
    this.#lose(guest, stay, outcome, detail)
  }

  /** What nobody waits for takes too much: timers that start each other, say. */
  endBackground(guest: Guest): void {
    if (guest.disposed) return
    const { stay } = guest
    if (stay !== undefined && !stay.isEnded) return this.#lose(guest, stay, 'cpu-exceeded', BACKGROUND_ENDED, guest.background)
    guest.dispose()
    this.#parts.invocations.lost(guest, guest.background, 'cpu-exceeded', () => BACKGROUND_ENDED)
  }

  /** V8 has parked the guest's thread for good, which it does when it has no memory left. */
  gaveUp(guest: Guest): void {
    const { stay } = guest
    if (stay === undefined || stay.rung === 'poisoned') return
    guest.hear()
    this.#parts.updateStays()
    if (!stay.isEnded) this.#loseToMemory(guest, stay)
    this.#climbRemains(guest, stay, { cpuMs: undefined, endedMs: 0, gaveUp: true })
  }

  /** The isolate is gone in the middle of a stay. If we did not end it, V8 did, and it does so for memory only. */
  lost(guest: Guest, stay: Stay): void {
    if (stay.isEnded) return
    this.#parts.updateStays()
    if (guest.isDisposedByUs) return this.#dispose(guest, stay)
    this.#loseToMemory(guest, stay)
  }

  /** The same while nothing ran in it: V8 collects garbage also then, and finds what the entries before have left. */
  lostAtRest(guest: Guest): void {
    guest.reachedMemoryLimit()
    guest.dispose()
    const detail = memoryDetail(guest)
    this.#parts.invocations.lost(guest, guest.queue.lastRun ?? guest.background, 'memory-exceeded', () => detail)
  }

  #loseToMemory(guest: Guest, stay: Stay): void {
    guest.reachedMemoryLimit()
    // To look at the memory takes none: it was there before.
    const culprit = stay.current === guest.memoryAccount ? (guest.queue.lastRun ?? stay.current) : stay.current
    this.#lose(guest, stay, 'memory-exceeded', memoryDetail(guest), culprit)
  }

  #lose(guest: Guest, stay: Stay, outcome: FailedOutcome, detail: string, culprit = stay.current): void {
    // Who has answered by now has, whoever it dies of.
    guest.hear()
    stay.cap(cpuLimitMs(guest) + BILLED_GRACE_MS, isLimitedByEntry(guest, stay))
    // Before anybody is placed anew, or they would be placed here.
    this.#dispose(guest, stay)
    if (!guest.isLoaded) guest.endLoad(new LoadFailure(`In the module scope: ${detail}`, { outcome }))
    const detailOf = ({ limits }: ActiveInvocation): string =>
      outcome === 'timeout' ? `No answer within the wall limit of ${limits.wallMs} ms.` : detail
    this.#parts.invocations.lost(guest, culprit, outcome, detailOf)
  }

  /** Disposes the isolate, unless it is. Its thread may need a core to come out; what it used before does not tell against it. */
  #dispose(guest: Guest, stay: Stay): void {
    stay.atEndNs = guest.usedNs
    guest.queue.chargeEarly()
    stay.endedAtMs = performance.now()
    stay.rung = 'ended'
    guest.dispose()
    this.#parts.remains.disposed(guest.revision, stay)
    this.#parts.onLost(stay)
  }

  /** The isolate was disposed, and its thread has not left it. */
  #lookAtRemains(guest: Guest, stay: Stay, endedAtMs: number): void {
    if (stay.rung === 'poisoned') return
    const cpuMs = Math.max(0, guest.usedNs - stay.atEndNs) / 1e6
    if (cpuMs >= CONFINED_FROM_MS) guest.confine()
    this.#climbRemains(guest, stay, { cpuMs, endedMs: performance.now() - endedAtMs, gaveUp: false })
  }

  #climbRemains(guest: Guest, stay: Stay, remains: { cpuMs: number | undefined; endedMs: number; gaveUp: boolean }): void {
    const { rung, reason } = climb(stay.rung, { of: 'remains', ...remains })
    stay.rung = rung
    if (rung !== 'poisoned') return
    this.#parts.remains.stuck(guest.revision, stay)
    this.#parts.onPoisoned(guest, reason === 'gave-up' ? reason : 'stuck')
  }
}

function memoryDetail({ limits }: Guest): string {
  return `The isolate passed its memory limit of ${limits.memoryMb} MiB.`
}

/** What nobody waits for is limited entry by entry, for it has no end at which to begin again. */
function isLimitedByEntry({ background, memoryAccount }: Guest, { current }: Stay): boolean {
  return current.open === background || current === memoryAccount
}

/** A module scope has a limit of its own, unless that of invocations is higher. */
function cpuLimitMs({ isLoaded, limits }: Guest): number {
  return isLoaded ? limits.cpuMs : Math.min(Math.max(limits.cpuMs, START_CPU_MS), START_CPU_MAX_MS)
}
