import { LIMIT_RANGES } from '@carpool/core'
import type { Test } from 'tap'
import type { LedgerRow } from '../../support/ledger.ts'
import { CUT_OFF, type Answer } from './call.ts'
import type { Billed, IsolationCase } from './isolation-case.ts'

/** No more than this is billed beyond a CPU limit, in µs. */
const GRACE_US = 50_000
/** CPU time and wall time are read one after the other, in µs. */
const READING_US = 1_000
const COUNTS = ['cpu_us', 'init_cpu_us', 'wall_us', 'queue_us', 'init_us', 'bytes_out', 'egress_bytes_in'] as const
/** Most complaints that a failure shows. */
const SHOWN = 5

/** The bill of an attack: each call has exactly one record, which says what was answered and charges what is due. */
export function checkBill(
  t: Test,
  { billed, limits = {} }: Pick<IsolationCase, 'billed' | 'limits'>,
  answers: readonly Answer[],
  records: readonly LedgerRow[],
): void {
  const limitUs = (limits.cpuMs ?? LIMIT_RANGES.cpuMs.default) * 1000
  const byId = new Map(records.map((record) => [record['id'], record]))
  const complaints = [
    ...(byId.size === records.length ? [] : [`${records.length} records of ${byId.size} invocations`]),
    ...answers.flatMap((answer) => complaintsOfAnswer(answer, byId.get(answer.id), billed)),
    ...records.flatMap((record) => complaintsOfTimes(record, billed, limitUs)),
  ]
  t.strictSame(complaints.slice(0, SHOWN), [], `${records.length} records are right; ${billedText(records)}`)
}

function complaintsOfAnswer(answer: Answer, record: LedgerRow | undefined, billed: Billed): string[] {
  if (record === undefined) return billed === 'none' ? [] : [`${answer.path} ${answer.id} has no record`]
  const { status, outcome, error } = record
  const said = outcome === 'refused' ? error : outcome
  return [
    // The status 0 is that of an answer that was cut off before it began.
    ...(answer.status === 0 || answer.status === status ? [] : [`answered ${answer.status}, recorded ${status}`]),
    ...(answer.code === '' || answer.code === said || (answer.code === CUT_OFF && said !== 'ok')
      ? []
      : [`answered ${answer.code}, recorded ${said}`]),
  ]
}

function complaintsOfTimes(record: LedgerRow, billed: Billed, limitUs: number): string[] {
  const complaints = COUNTS.filter((key) => !Number.isSafeInteger(record[key]) || Number(record[key]) < 0).map(
    (key) => `${key} is ${record[key]}`,
  )
  const { outcome } = record
  const wallUs = Number(record['wall_us'])
  const cpuUs = Number(record['cpu_us'])
  const initCpuUs = Number(record['init_cpu_us'])
  if (cpuUs > wallUs + READING_US) complaints.push('more CPU than time')
  if (cpuUs > limitUs + GRACE_US) complaints.push(`more than the limit of ${limitUs} µs and the grace`)
  if ((billed === 'none' || outcome === 'refused') && cpuUs > 0) complaints.push('billed, and should not be')
  if ((billed === 'full' || billed === 'cap') && outcome !== 'refused' && cpuUs + initCpuUs === 0) complaints.push('not billed')
  // Whoever was begun twice was ended for others first.
  if (outcome === 'cpu-exceeded' && record['attempts'] === 1 && Number(record['init_us']) === 0 && cpuUs < limitUs) {
    complaints.push('billed less than the limit that it passed')
  }
  return complaints.map(
    (complaint) => `${complaint}: ${outcome}, ${cpuUs} µs of CPU, ${initCpuUs} µs of a start, in ${wallUs} µs`,
  )
}

function billedText(records: readonly LedgerRow[]): string {
  return records
    .slice(0, SHOWN)
    .map(({ outcome, cpu_us }) => `${outcome} ${cpu_us} µs`)
    .join(', ')
}
