import type { Call } from '../lib/load/load-order.ts'
import type { LedgerRecord } from './ledger.ts'

/** A call as its client saw it. */
export interface ClientCall {
  readonly functionName: string
  /** Absent if there was no answer. */
  readonly id?: string
  /** `ok`, the code of what it came to instead, or `left`. */
  readonly end: string
}

/** How a call ended for its client, in the words of the ledger. */
export function clientEnd({ status, code, failure }: Pick<Call, 'status' | 'code' | 'failure'>): string {
  return failure ?? code ?? (status >= 200 && status < 300 ? 'ok' : String(status))
}

/** What one function came to, by its clients and by the ledger. */
export interface EndCount {
  readonly functionName: string
  readonly end: string
  readonly calls: number
  readonly records: number
}

/** How far clients and ledger tell the same. */
export interface Agreement {
  readonly calls: number
  readonly records: number
  readonly counts: readonly EndCount[]
  /** Answered calls of which there is no record. */
  readonly missing: number
  /** Records of an id that another has too. */
  readonly doubled: number
  /** Answered calls whose record has another function or end. */
  readonly different: number
  /** Calls without an answer. */
  readonly unanswered: number
  /** Records that belong to no answered call. */
  readonly unclaimed: number
  /** Of these, those that are more than the unanswered calls of their function: each has one at most. */
  readonly surplus: number
}

/** Sets what clients saw against what is in the ledger, call by call. */
export function agreementOf(calls: readonly ClientCall[], records: readonly LedgerRecord[]): Agreement {
  const byId = new Map(records.map((record) => [record.id, record]))
  const answered = calls.filter(({ id }) => id !== undefined)
  const claimed = new Set(answered.map(({ id }) => id))
  const unanswered = countBy(
    calls.filter(({ id }) => id === undefined),
    ({ functionName }) => functionName,
  )
  const unclaimed = countBy(
    records.filter(({ id }) => !claimed.has(id)),
    ({ functionName }) => functionName,
  )
  const isDifferent = ({ id = '', functionName, end }: ClientCall): boolean => {
    const record = byId.get(id)
    return record !== undefined && (record.functionName !== functionName || record.end !== end)
  }
  return {
    calls: calls.length,
    records: records.length,
    counts: endCounts(calls, records),
    missing: answered.filter(({ id = '' }) => !byId.has(id)).length,
    doubled: records.length - byId.size,
    different: answered.filter(isDifferent).length,
    unanswered: sum(unanswered.values()),
    unclaimed: sum(unclaimed.values()),
    surplus: sum([...unclaimed].map(([name, count]) => Math.max(0, count - (unanswered.get(name) ?? 0)))),
  }
}

function endCounts(calls: readonly ClientCall[], records: readonly LedgerRecord[]): EndCount[] {
  const key = ({ functionName, end }: Pick<ClientCall, 'functionName' | 'end'>): string => `${functionName} ${end}`
  const seen = countBy(calls, key)
  const recorded = countBy(records, key)
  return [...new Set([...seen.keys(), ...recorded.keys()])].toSorted().map((name) => {
    const [functionName = '', ...end] = name.split(' ')
    return { functionName, end: end.join(' '), calls: seen.get(name) ?? 0, records: recorded.get(name) ?? 0 }
  })
}

function countBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1)
  return counts
}

function sum(values: Iterable<number>): number {
  return [...values].reduce((total, value) => total + value, 0)
}
