/** How often guests are looked at, and how long one has to confirm a ping, in ms. */
export const STALL_GRACE_MS = 250

export interface StallSample {
  readonly nowMs: number
  /** When the first entry was queued since the guest last called the host; undefined if none was. */
  readonly silentSinceMs: number | undefined
  /** When the guest was last asked to confirm that it gets round to its entries; undefined if not in this silence. */
  readonly pingedAtMs: number | undefined
  readonly wallMs: number
}

/**
 * Whether a guest is stuck in user code. One that has been silent for a whole wall limit is asked for a sign of life first, for entries that
 * do nothing call nobody. One that owes the sign for {@link STALL_GRACE_MS} is stuck: no entry that is still within its own limit can be
 * what holds it up, except one that was queued behind others, which then gets less than its limit.
 */
export function judgeStall({ nowMs, silentSinceMs, pingedAtMs, wallMs }: StallSample): 'fine' | 'ping' | 'stuck' {
  if (silentSinceMs === undefined || nowMs - silentSinceMs < wallMs) return 'fine'
  if (pingedAtMs === undefined) return 'ping'
  return nowMs - pingedAtMs < STALL_GRACE_MS ? 'fine' : 'stuck'
}

/** What the watch needs of a guest. */
export interface Watched {
  readonly disposed: boolean
  readonly silentSinceMs: number | undefined
  readonly wallMs: number
  /** Has the guest call the host when it gets round to it. */
  ping(): void
}

/** Looks at guests from their loading to their end, whether or not somebody waits for an answer of theirs. */
export class StallWatch<G extends Watched> {
  readonly #pingedAtMs = new Map<G, number | undefined>()
  readonly #onStuck: (guest: G) => void

  constructor(onStuck: (guest: G) => void) {
    this.#onStuck = onStuck
    setInterval(() => this.look(performance.now()), STALL_GRACE_MS).unref()
  }

  add(guest: G): void {
    this.#pingedAtMs.set(guest, undefined)
  }

  look(nowMs: number): void {
    for (const [guest, pingedAtMs] of this.#pingedAtMs) {
      if (guest.disposed) {
        this.#pingedAtMs.delete(guest)
        continue
      }
      const { silentSinceMs, wallMs } = guest
      const isOldPing = silentSinceMs === undefined || (pingedAtMs !== undefined && pingedAtMs < silentSinceMs)
      const verdict = judgeStall({ nowMs, silentSinceMs, pingedAtMs: isOldPing ? undefined : pingedAtMs, wallMs })
      if (verdict === 'ping') {
        this.#pingedAtMs.set(guest, nowMs)
        guest.ping()
      } else if (verdict === 'stuck') {
        this.#pingedAtMs.delete(guest)
        this.#onStuck(guest)
      }
    }
  }
}
