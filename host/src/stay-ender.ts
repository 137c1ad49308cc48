import type { FailedOutcome } from '@carpool/core'
import type { Guest } from './guest.ts'
import type { ActiveInvocation } from './invocation-table.ts'
import type { Invocations } from './invocations.ts'
import { BILLED_GRACE_MS, judgeStay } from './judge-stay.ts'
import { LoadFailure } from './load-failure.ts'
import type { Stay } from './stay.ts'

/** How long an answer may wait for the rest of its entry, in ms. Then the entry is charged so far, and what comes is nobody's. */
const HOLD_MS = 5
/** CPU time that a module scope may take, in ms: it often takes more than any call, and takes it once. */
const START_CPU_MS = 10_000

export interface StayEnderParts {
  readonly invocations: Invocations
  /** Brings what is known of all running stays up to date. */
  readonly updateStays: () => void
  /** A guest has lost its isolate. */
  readonly onLost: (stay: Stay) => void
}

/** Ends guests whose entries pass their limits, and sees to it that those who shared the isolate are told. */
export class StayEnder {
  readonly #parts: StayEnderParts

  constructor(parts: StayEnderParts) {
    this.#parts = parts
  }

  /** Looks at a guest that is entered. */
  look(guest: Guest, stay: Stay): void {
    if (stay.isEnded) return
    // V8 gives an isolate up without a word; its thread may take long to notice.
    if (guest.disposed) return this.lost(guest, stay)
    const ranMs = performance.now() - stay.beganAtMs
    if (ranMs >= HOLD_MS && guest.queue.someoneWaits) guest.queue.chargeEarly()
    const { current } = stay
    const isNobodys = isLimitedByEntry(guest, stay)
    const verdict = judgeStay({
      spentMs: isNobodys ? 0 : current.cpuNs / 1e6,
      usedMs: (isNobodys ? stay.turnNs : stay.unchargedNs(current)) / 1e6,
      ranMs,
      cpuLimitMs: current === guest.memoryAccount ? Number.POSITIVE_INFINITY : cpuLimitMs(guest),
      wallLimitMs: guest.limits.wallMs,
    })
    if (verdict !== 'fine') this.end(guest, verdict)
  }

  end(guest: Guest, why: 'over-cpu' | 'stuck'): void {
    const { stay } = guest
    if (stay === undefined || stay.isEnded || guest.disposed) return
    const limitMs = cpuLimitMs(guest)
    if (why === 'over-cpu') stay.cap(limitMs + BILLED_GRACE_MS, isLimitedByEntry(guest, stay))
    const [outcome, detail] =
      why === 'over-cpu'
        ? (['cpu-exceeded', `More CPU time than the limit of ${limitMs} ms.`] as const)
        : (['timeout', `No answer within the wall limit of ${guest.limits.wallMs} ms.`] as const)
    this.#lose(guest, stay, outcome, detail)
  }

  /** The isolate is gone in the middle of a stay. If we did not end it, V8 did, and it does so for memory only. */
  lost(guest: Guest, stay: Stay): void {
    if (stay.isEnded) return
    this.#parts.updateStays()
    if (guest.isDisposedByUs) {
      stay.isEnded = true
      guest.queue.chargeEarly()
      return this.#parts.onLost(stay)
    }
    guest.reachedMemoryLimit()
    this.#lose(guest, stay, 'memory-exceeded', `The isolate passed its memory limit of ${guest.limits.memoryMb} MiB.`)
  }

  #lose(guest: Guest, stay: Stay, outcome: FailedOutcome, detail: string): void {
    const { current } = stay
    guest.queue.chargeEarly()
    stay.isEnded = true
    // Before anybody is placed anew, or they would be placed here.
    guest.dispose()
    this.#parts.onLost(stay)
    if (!guest.isLoaded) guest.endLoad(new LoadFailure(`In the module scope: ${detail}`, { outcome }))
    const detailOf = ({ limits }: ActiveInvocation): string =>
      outcome === 'timeout' ? `No answer within the wall limit of ${limits.wallMs} ms.` : detail
    this.#parts.invocations.lost(guest, current, outcome, detailOf)
  }
}

/** What nobody waits for is limited entry by entry, for it has no end at which to begin again. */
function isLimitedByEntry({ background, memoryAccount }: Guest, { current }: Stay): boolean {
  return current.open === background || current === memoryAccount
}

/** A module scope has a limit of its own, unless that of invocations is higher. */
function cpuLimitMs({ isLoaded, limits }: Guest): number {
  return isLoaded ? limits.cpuMs : Math.max(limits.cpuMs, START_CPU_MS)
}
