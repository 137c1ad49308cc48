import { milliseconds } from '../lib/quantities.ts'
import { renderTable, type Column, type TableStyle } from '../lib/table.ts'
import { atMost, type Verdict } from '../lib/verdict.ts'
import { decisionBlock } from '../scaling/decision-line.ts'
import { endLine } from '../lib/load/call-summary.ts'
import { changesOnly, inShort, valuesOf, VIEW_MS, type ReplayFigures } from './figures.ts'
import { drawPicture } from './picture.ts'
import type { ReplayPlan } from './replay-plan.ts'
import type { Replayed } from './replay.ts'
import { mean } from './series.ts'

/** What a replay is called, with its scale: no figure of it means anything without. */
export function replayNote({ calls, functionNames }: ReplayPlan, minutes: number, scale: number): string {
  return `${minutes} minutes of ${functionNames.length} functions, all times divided by ${scale}, ${calls.length} calls`
}

const PICTURE_POINTS = 240

export function replayPicture({ hosts, cores, concurrency }: ReplayFigures, note: string): string {
  return drawPicture({
    title: 'Azure Functions 2019, replayed: hosts, CPU and concurrency',
    caption: `${note}. Data: Shahrad et al., Serverless in the Wild, USENIX ATC 2020 (CC-BY).`,
    panels: [
      { title: 'hosts that take calls', points: changesOnly(hosts), color: '#b3261e', shape: 'steps' },
      { title: 'CPU of the hosts, in cores', points: inShort(cores, PICTURE_POINTS), color: '#1a5fb4', shape: 'line' },
      { title: 'calls in flight', points: inShort(concurrency, PICTURE_POINTS), color: '#26703a', shape: 'line' },
    ],
  })
}

/** The curves of the picture for machines. */
export function replaySeries({ hosts, cores, concurrency }: ReplayFigures): object {
  return {
    hosts: inShort(changesOnly(hosts), hosts.length),
    cores: inShort(cores, PICTURE_POINTS),
    concurrency: inShort(concurrency, PICTURE_POINTS),
  }
}

interface Row {
  readonly title: string
  readonly values: readonly number[]
}

const COLUMNS: ReadonlyArray<Column<Row>> = [
  { title: 'over time', align: 'left', text: ({ title }) => title },
  { title: 'least', text: ({ values }) => Math.min(...values).toFixed(2) },
  { title: 'mean', text: ({ values }) => mean(values).toFixed(2) },
  { title: 'most', text: ({ values }) => Math.max(...values).toFixed(2) },
]

export function replayBlocks(plan: ReplayPlan, replayed: Replayed, figures: ReplayFigures, style: TableStyle): string[] {
  const { load, decisions, longestGapMs } = replayed
  const { hosts, cores, concurrency, correlations, good } = figures
  const rows: Row[] = [
    { title: 'hosts that take calls', values: valuesOf(hosts) },
    { title: 'CPU of the hosts, in cores', values: valuesOf(cores) },
    { title: 'calls in flight', values: valuesOf(concurrency) },
  ]
  const rate = plan.calls.length / (plan.durationMs / 1000)
  return [
    renderTable(COLUMNS, rows, style),
    `Correlation of the hosts with CPU ${correlationText(correlations.withCpu)}, with concurrency ${correlationText(correlations.withConcurrency)} (means over ${VIEW_MS / 1000} s)`,
    `Answers: ${endLine(load.calls)}; p50 ${milliseconds(good.p50 ?? Number.NaN)}, p99 ${milliseconds(good.p99 ?? Number.NaN)}; ${rate.toFixed(0)} calls/s, planned for ${plan.cores.toFixed(2)} cores`,
    `Generator: ${load.generatorCores.toFixed(2)} cores, latest start ${milliseconds(load.latestStartMs)}; longest time between samples ${milliseconds(longestGapMs)}`,
    decisionBlock(decisions),
  ]
}

export function checkReplay({ failed, refused, correlations }: ReplayFigures): Verdict[] {
  const { withCpu, withConcurrency } = correlations
  return [
    atMost('demand', 'failed calls', failed, 0, String),
    atMost('demand', 'refused calls', refused, 0, String),
    {
      kind: 'aim',
      claim: 'hosts follow CPU rather than concurrency',
      isMet: withCpu !== undefined && withCpu > Math.abs(withConcurrency ?? 0),
      detail: `correlation with CPU ${correlationText(withCpu)}, with concurrency ${correlationText(withConcurrency)}`,
    },
  ]
}

function correlationText(value: number | undefined): string {
  return value?.toFixed(2) ?? 'none, for one of them never changes'
}
