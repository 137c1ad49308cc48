import { AWAY_MS } from '@carpool/wire'
import type { ProcessUsage } from '../pool/os-process.ts'

/** Above what the host itself notices, in ms: the system brings the times of threads up to date by clock ticks. */
const MARGIN_MS = 100
/** A process that uses a larger share of a core does not stand still. What pages in from a slow disk uses some. */
const STILL_SHARE = 0.02
/** The system counts the CPU time of a process in steps of 10 ms, so it takes a while to tell, in ms. */
const TELLING_MS = 500

interface Sample {
  readonly atMs: number
  readonly usage: ProcessUsage
  readonly callsSent: number
}

/**
 * What the system knows of a host that says nothing: whether the process stands still as a whole, stopped, swapped out or
 * frozen with its control group or machine, which is nobody's fault; and which calls it cannot have read.
 *
 * A host reads with its first thread. If that has had no CPU time since a sample, it has read none of the calls that were sent
 * later. It may wake at any moment, so the server alone cannot take them back: by then the host must refuse what it reads. It
 * does so once it finds that it was away for {@link AWAY_MS} (`host/src/calls/presence.ts`), so calls are taken back only after
 * longer than that.
 */
export class Standstill {
  /** The first since the host was heard. */
  #first: Sample | undefined
  /** The first since its first thread has run. */
  #still: Sample | undefined
  #last: Sample | undefined

  /** The host has said something, so it runs. */
  heard(): void {
    this.#first = this.#still = undefined
  }

  /** Called four times a second. @param callsSent how many calls were sent to it by now */
  sample(usage: ProcessUsage | undefined, callsSent: number, atMs: number): void {
    if (usage === undefined) return this.heard()
    this.#last = { atMs, usage, callsSent }
    this.#first ??= this.#last
    if (this.#still?.usage.firstThreadNs !== usage.firstThreadNs) this.#still = this.#last
  }

  /** Whether the process has used next to no CPU time since it was heard. */
  get isFrozen(): boolean {
    const first = this.#first
    const last = this.#last
    if (first === undefined || last === undefined) return false
    const passedMs = last.atMs - first.atMs
    return passedMs >= TELLING_MS && (last.usage.cpuUs - first.usage.cpuUs) / 1000 <= passedMs * STILL_SHARE
  }

  /** It has not read, and will not begin, any call that was sent after so many; undefined if that cannot be known. */
  get unreadAfter(): number | undefined {
    const still = this.#still
    const last = this.#last
    if (still?.usage.firstThreadNs === undefined || last === undefined) return undefined
    return last.atMs - still.atMs >= AWAY_MS + MARGIN_MS ? still.callsSent : undefined
  }
}
