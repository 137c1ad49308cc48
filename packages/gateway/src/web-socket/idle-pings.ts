import { type Clock } from '@carpool/core'

/** A connection of a client that is looked at now and then. */
export interface Pinged {
  /** When bytes came last, on the monotonic clock, in ms. */
  readonly readAtMs: number
  ping(): void
  /** Its client answers no pings: it is not there any more. */
  drop(): void
}

export interface IdlePingsOptions {
  readonly clock: Clock
  /** How long nothing may come before a client is asked whether it is there, and before it counts as gone. */
  readonly idleMs: number
  /** Calls back every so many ms while there are connections. */
  readonly every: (callback: () => void, ms: number) => { stop(): void }
}

interface Look {
  atMs: number
  /** What was the last that had come when it was pinged; -1: it was not. */
  pingedAtMs: number
}

/**
 * Pings clients from which nothing has come for a while, and drops those that answer none: a peer that is gone without a word
 * looks like one that has nothing to say. All have the same time, so they lie in the order in which they are due, and a look at
 * thousands of idle ones costs nothing.
 */
export class IdlePings {
  readonly #options: IdlePingsOptions
  readonly #looks = new Map<Pinged, Look>()
  #ticking: { stop(): void } | undefined

  constructor(options: IdlePingsOptions) {
    this.#options = options
  }

  add(pinged: Pinged): void {
    const { clock, every, idleMs } = this.#options
    this.#looks.set(pinged, { atMs: clock() + idleMs, pingedAtMs: -1 })
    this.#ticking ??= every(() => this.#look(), idleMs / 16)
  }

  remove(pinged: Pinged): void {
    this.#looks.delete(pinged)
    if (this.#looks.size === 0) this.#stop()
  }

  #look(): void {
    const { clock, idleMs } = this.#options
    const nowMs = clock()
    for (const [pinged, look] of this.#looks) {
      if (look.atMs > nowMs) return
      this.#looks.delete(pinged)
      const { readAtMs } = pinged
      if (look.pingedAtMs === readAtMs) {
        pinged.drop()
        continue
      }
      const isIdle = nowMs - readAtMs >= idleMs
      if (isIdle) pinged.ping()
      look.pingedAtMs = isIdle ? readAtMs : -1
      look.atMs = nowMs + idleMs
      this.#looks.set(pinged, look)
    }
    if (this.#looks.size === 0) this.#stop()
  }

  #stop(): void {
    this.#ticking?.stop()
    this.#ticking = undefined
  }
}
