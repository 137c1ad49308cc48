import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Billed, Group, Verdict } from './isolation-case.ts'

/** Variable that names the folder in which a run keeps its rows. */
export const ROWS_FOLDER = 'CARPOOL_ISOLATION_ROWS'

/** What a run says of a case. */
export interface Row {
  readonly id: string
  readonly group: Group
  readonly title: string
  readonly verdict: Verdict | 'skipped'
  /** What was answered: statuses and codes. */
  readonly answered: string
  readonly billed: Billed | ''
  /** CPU time of the record, in ms: the median of the attack's. */
  readonly billedCpuMs?: number
  /** From the start of its code to the end of an invocation that was ended, in ms: the longest. */
  readonly killMs?: number
  readonly aloneP99Ms?: number
  readonly duringP99Ms?: number
  /** How much more memory the host had at its peak, in MiB. */
  readonly growthMb?: number
  /** Why it was skipped. */
  readonly note?: string
}

/** Keeps a row for the table, if the run makes one. */
export function keepRow(row: Row): void {
  const folder = process.env[ROWS_FOLDER]
  if (folder !== undefined) appendFileSync(join(folder, `${row.group}-${process.pid}.ndjson`), `${JSON.stringify(row)}\n`)
}

export function readRows(folder: string): Row[] {
  return readdirSync(folder)
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row)
}

const TITLES: Readonly<Record<Group, string>> = {
  escape: 'Escapes and boundary abuse',
  CPU: 'CPU',
  memory: 'Memory',
  flood: 'Floods',
  network: 'Network',
  gateway: 'Gateway and control plane',
  lifecycle: 'Lifecycle and failures',
  billing: 'Bills',
  platform: 'Platform',
}

/** The rows as a document, group by group. */
export function renderTable(rows: readonly Row[]): string {
  const sections = Object.entries(TITLES).flatMap(([group, title]) => {
    const own = rows.filter((row) => row.group === group).toSorted((a, b) => compare(a.id, b.id))
    if (own.length === 0) return []
    const run = own.filter(({ verdict }) => verdict !== 'skipped')
    const skipped = own.filter(({ verdict }) => verdict === 'skipped')
    return [
      `## ${title}`,
      [
        '| case | attack | verdict | answered | billed | CPU billed | time to kill | peak memory | neighbour p99 alone / during |',
        '|---|---|---|---|---|--:|--:|--:|--:|',
        ...run.map(
          (row) =>
            `| ${[row.id, cell(row.title), row.verdict, cell(row.answered), row.billed, ms(row.billedCpuMs), ms(row.killMs), mb(row.growthMb), pair(row)].join(' | ')} |`,
        ),
      ].join('\n'),
      ...(skipped.length === 0 ? [] : [skipped.map(({ id, title, note }) => `- ${id}, ${title}: ${note}`).join('\n')]),
    ]
  })
  return sections.join('\n\n')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function pair({ aloneP99Ms, duringP99Ms }: Row): string {
  return duringP99Ms === undefined ? '' : `${ms(aloneP99Ms)} / ${ms(duringP99Ms)}`
}

function ms(value: number | undefined): string {
  return value === undefined ? '' : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}

function mb(value: number | undefined): string {
  return value === undefined ? '' : `+${Math.max(0, Math.round(value))} MiB`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
