import type { LedgerRow } from '../../support/ledger.ts'
import type { Answer } from './call.ts'
import type { IsolationCase } from './isolation-case.ts'
import type { Probe } from './neighbour.ts'
import type { Rig } from './rig.ts'
import type { Row } from './table.ts'

/** What the table says of a case. */
export function rowOf(
  { id, group, title, verdict, billed }: IsolationCase,
  { alone }: Rig,
  probe: Probe,
  answers: readonly Answer[],
  records: readonly LedgerRow[],
): Row {
  const ended = records.filter(({ outcome }) => outcome !== 'ok' && outcome !== 'refused')
  const cpuMs = records.map(({ cpu_us }) => Number(cpu_us) / 1000).toSorted((a, b) => a - b)
  const middle = cpuMs[Math.floor(cpuMs.length / 2)]
  return {
    id,
    group,
    title,
    verdict,
    billed,
    answered: [...new Set(answers.map(({ status, code }) => `${status} ${code}`.trim()))].join(', '),
    ...(middle !== undefined && { billedCpuMs: middle }),
    ...((verdict === 'K' || verdict === 'P') && ended.length > 0 && { killMs: Math.max(...ended.map(execMs)) }),
    ...(alone?.p99Ms !== undefined && { aloneP99Ms: alone.p99Ms }),
    ...(probe.p99Ms !== undefined && { duringP99Ms: probe.p99Ms }),
  }
}

/** Time in which user code ran or waited, in ms. */
export function execMs(record: LedgerRow): number {
  return (Number(record['wall_us']) - Number(record['queue_us']) - Number(record['init_us'])) / 1000
}
