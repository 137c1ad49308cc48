import type { Background } from '@carpool/wire'
import type { FetchedBytes, FetchingHost } from './egress-relay.ts'

const REPORT_MS = 250

/**
 * Adds up what went over for fetches that nobody waited for to their end: invocations that timed out, hosts that are gone, aborts. It is used
 * in the background by the function, and told a few times a second, as a storm of aborts must not be one of rows.
 */
export class UnclaimedEgress {
  readonly #report: (host: FetchingHost, used: Background) => void
  readonly #sums = new Map<FetchingHost, Map<string, { bytesOut: number; bytesIn: number }>>()
  #timer: NodeJS.Timeout | undefined

  constructor(report: (host: FetchingHost, used: Background) => void) {
    this.#report = report
  }

  add(host: FetchingHost, revision: string, { bytesOut, bytesIn }: FetchedBytes): void {
    if (bytesOut + bytesIn === 0) return
    let sums = this.#sums.get(host)
    if (sums === undefined) this.#sums.set(host, (sums = new Map()))
    const sum = sums.get(revision)
    if (sum === undefined) {
      sums.set(revision, { bytesOut, bytesIn })
    } else {
      sum.bytesOut += bytesOut
      sum.bytesIn += bytesIn
    }
    this.#timer ??= setTimeout(() => this.#flush(), REPORT_MS).unref()
  }

  /** Tells what there is left. */
  close(): void {
    this.#flush()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const told = [...this.#sums]
    this.#sums.clear()
    for (const [host, sums] of told) {
      for (const [revision, { bytesOut, bytesIn }] of sums) {
        this.#report(host, { type: 'background', revision, cpuUs: 0, egressBytesOut: bytesOut, egressBytesIn: bytesIn })
      }
    }
  }
}
