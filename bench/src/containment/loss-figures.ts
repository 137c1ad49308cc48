import { endOf, latencyMs } from '../lib/load/call-summary.ts'
import type { Call } from '../lib/load/load-order.ts'
import { killDuring, type Kill } from './kills.ts'
import type { LedgerRecord } from './ledger.ts'

/** What became of the calls of one method while hosts were killed. */
export interface LossFigures {
  readonly method: 'GET' | 'POST'
  readonly calls: readonly Call[]
  readonly failed: number
  /** Of these, those with the answer `host-lost`, and of those the ones that were sent before the signal. */
  readonly lost: number
  readonly lostSentBefore: number
  /** Failed, and not as `host-lost`, or not in flight at a kill. */
  readonly unexplained: number
  /** From the signal to the latest answer to a lost call. */
  readonly slowestAnswerMs: number
  /** Calls that were begun again. */
  readonly again: number
  /** From the due time to the answer of those that were begun again. */
  readonly slowestAgainMs: number
}

export function lossFigures(
  method: LossFigures['method'],
  calls: readonly Call[],
  kills: readonly Kill[],
  records: readonly LedgerRecord[],
): LossFigures {
  const failed = calls.filter((call) => endOf(call) !== 'good')
  const again = new Set(records.filter(({ attempts }) => attempts > 1).map(({ id }) => id))
  const begunAgain = calls.filter(({ id = '' }) => again.has(id))
  const lost = failed.filter(isHostLost)
  const sinceKillMs = lost.flatMap(({ sentMs, endedMs }) => {
    const kill = killDuring({ sentMs, endedMs }, kills)
    return kill === undefined ? [] : [{ sentMs: sentMs - kill.atMs, endedMs: endedMs - kill.atMs }]
  })
  return {
    method,
    calls,
    failed: failed.length,
    lost: lost.length,
    lostSentBefore: sinceKillMs.filter(({ sentMs }) => sentMs <= 0).length,
    unexplained: failed.length - sinceKillMs.length,
    slowestAnswerMs: Math.max(0, ...sinceKillMs.map(({ endedMs }) => endedMs)),
    again: begunAgain.length,
    slowestAgainMs: Math.max(0, ...begunAgain.map(latencyMs)),
  }
}

function isHostLost({ status, code, failure }: Call): boolean {
  return status === 502 && code === 'host-lost' && failure === undefined
}
