import { isolatesCpu } from '../lib/host-cpu.ts'
import { cpuSeconds, milliseconds, percent } from '../lib/quantities.ts'
import { median } from '../lib/statistics.ts'
import { renderTable, type Column, type TableStyle } from '../lib/table.ts'
import type { AccuracyResult } from './accuracy.ts'
import type { ConservationResult } from './conservation.ts'
import { mean, type NeighbourRun } from './neighbour.ts'
import { ratesOf, VERSIONS, type ThroughputRun, type Version } from './throughput.ts'

/** What each part of the bench prints. */

const ms = (us: number): string => milliseconds(us / 1000)

const ACCURACY: ReadonlyArray<Column<AccuracyResult>> = [
  { title: 'CPU wanted', text: ({ cpuMs }) => `${cpuMs} ms` },
  { title: 'alone', text: ({ referenceUs }) => ms(median(referenceUs)) },
  { title: 'from', text: ({ referenceUs }) => ms(Math.min(...referenceUs)) },
  { title: 'to', text: ({ referenceUs }) => ms(Math.max(...referenceUs)) },
  { title: 'calls', text: ({ calls }) => String(calls) },
  { title: 'least', text: ({ recordedUs }) => ms(Math.min(...recordedUs)) },
  { title: 'median', text: ({ recordedUs }) => ms(median(recordedUs)) },
  { title: 'most', text: ({ recordedUs }) => ms(Math.max(...recordedUs)) },
  { title: 'out', text: ({ outside }) => String(outside) },
  { title: 'sum', text: ({ recordsSeconds }) => cpuSeconds(recordsSeconds) },
  { title: 'background', text: ({ backgroundSeconds }) => cpuSeconds(backgroundSeconds) },
  { title: 'isolates', text: ({ isolatesSeconds }) => cpuSeconds(isolatesSeconds) },
  { title: 'threads', text: ({ threadsSeconds }) => optionalSeconds(threadsSeconds) },
]

export function accuracyBlock(results: readonly AccuracyResult[], sleepersUs: readonly number[], style: TableStyle): string {
  const sleepers = `least ${ms(Math.min(...sleepersUs))}, median ${ms(median(sleepersUs))}, most ${ms(Math.max(...sleepersUs))}`
  return [
    'CPU time of single calls: made alone, and 50 at a time by their records',
    renderTable(ACCURACY, results, style),
    `${sleepersUs.length} calls that sleep for 2 s: ${sleepers}`,
  ].join('\n')
}

interface Part {
  readonly title: string
  readonly seconds: number | undefined
}

export function conservationBlock(result: ConservationResult, style: TableStyle): string {
  const { load, cpu, threads, processSeconds, ledgerSeconds } = result
  const parts: Part[] = [
    { title: 'ledger: invocations, starts and background', seconds: ledgerSeconds },
    { title: '  invocations', seconds: cpu.invocations },
    { title: '  starts', seconds: cpu.starts },
    { title: '  background', seconds: cpu.background },
    { title: 'blanks', seconds: cpu.blanks },
    { title: 'memory-watch', seconds: cpu['memory-watch'] },
    { title: 'unattributed', seconds: cpu.unattributed },
    { title: 'all of these: isolates, by their clocks', seconds: isolatesCpu(cpu) },
    { title: 'loop', seconds: cpu.loop },
    { title: 'threads: process without loop and isolates', seconds: cpu.threads },
    { title: 'process, by the system', seconds: processSeconds },
    { title: '  its main thread', seconds: threads?.main },
    { title: "  V8's helper threads", seconds: threads?.v8Helpers },
    { title: '  other threads, the isolates’ among them', seconds: threads?.others },
  ]
  const columns: ReadonlyArray<Column<Part>> = [
    {
      title: 'CPU of the host',
      align: 'left',
      text: ({ title }) => (style === 'markdown' ? title : title.replace(/^ {2}/, '- ')),
    },
    { title: 'time', text: ({ seconds }) => optionalSeconds(seconds) },
    { title: 'of the process', text: ({ seconds }) => (seconds === undefined ? '-' : percent(seconds / processSeconds)) },
  ]
  const streams = load.perStream.map(({ title, calls }) => `${calls} ${title}`).join(', ')
  return [`Mixed load, ${load.calls} calls, ${load.failures} failed: ${streams}`, renderTable(columns, parts, style)].join('\n')
}

const NEIGHBOUR: ReadonlyArray<Column<NeighbourRun>> = [
  { title: 'round', text: ({ round }) => String(round + 1) },
  {
    title: 'waiting function',
    align: 'left',
    text: ({ situation }) => (situation === 'alone' ? 'alone' : 'beside the burning one'),
  },
  { title: 'calls', text: ({ cpuUs }) => String(cpuUs.length) },
  { title: 'least', text: ({ cpuUs }) => ms(Math.min(...cpuUs)) },
  { title: 'median', text: ({ cpuUs }) => ms(median(cpuUs)) },
  { title: 'mean', text: ({ cpuUs }) => ms(mean(cpuUs)) },
  { title: 'most', text: ({ cpuUs }) => ms(Math.max(...cpuUs)) },
  { title: 'burning calls', text: ({ burned }) => String(burned) },
  { title: 'latest send', text: ({ latestStartMs }) => milliseconds(latestStartMs) },
]

export function neighbourBlock(runs: readonly NeighbourRun[], style: TableStyle): string {
  return `CPU time of a call of a function that waits, by its records\n${renderTable(NEIGHBOUR, runs, style)}`
}

export function throughputBlock(runs: readonly ThroughputRun[], rounds: number, style: TableStyle): string {
  const columns: ReadonlyArray<Column<Version>> = [
    { title: 'metering', align: 'left', text: (version) => version },
    ...Array.from({ length: rounds }, (_, round) => ({
      title: String(round + 1),
      text: (version: Version) => String(Math.round(ratesOf(runs, version)[round] ?? 0)),
    })),
    { title: 'median', text: (version) => String(Math.round(median(ratesOf(runs, version)))) },
    { title: 'p99', text: (version) => milliseconds(median(of(version).map(({ p99Ms }) => p99Ms))) },
    { title: 'CPU per request', text: (version) => `${median(of(version).map(cpuPerRequestUs)).toFixed(0)} µs` },
    {
      title: 'generator',
      text: (version) => percent(median(of(version).map(({ generatorCores }) => generatorCores))),
    },
  ]
  const of = (version: Version): ThroughputRun[] => runs.filter((run) => run.version === version)
  const rates = `Hello at 64 connections, requests per second, round by round\n${renderTable(columns, VERSIONS, style)}`
  return `${rates}\n\nCPU of each process per request, over all rounds\n${renderTable(PROCESSES, processRows(runs), style)}`
}

interface ProcessRow {
  readonly version: Version
  readonly program: string
  readonly cpuUs: number
}

const PROCESSES: ReadonlyArray<Column<ProcessRow>> = [
  { title: 'metering', align: 'left', text: ({ version }) => version },
  { title: 'process', align: 'left', text: ({ program }) => program },
  { title: 'CPU per request', text: ({ cpuUs }) => `${cpuUs.toFixed(1)} µs` },
]

function processRows(runs: readonly ThroughputRun[]): ProcessRow[] {
  return VERSIONS.flatMap((version) => {
    const own = runs.filter((run) => run.version === version)
    const requests = own.reduce((sum, { requestsPerSecond, durationMs }) => sum + (requestsPerSecond * durationMs) / 1000, 0)
    const byProgram = Map.groupBy(
      own.flatMap(({ usage }) => usage.processes),
      ({ program }) => program,
    )
    return [...byProgram].map(([program, processes]) => ({
      version,
      program,
      cpuUs: (processes.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) * 1e6) / requests,
    }))
  })
}

function cpuPerRequestUs({ usage, requestsPerSecond, durationMs }: ThroughputRun): number {
  return (usage.cpuSeconds * 1e9) / (requestsPerSecond * durationMs)
}

function optionalSeconds(value: number | undefined): string {
  return value === undefined ? '-' : cpuSeconds(value)
}
