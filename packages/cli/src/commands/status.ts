import type { FailedStartsInfo, HostInfo, ScalingDecisionInfo, StatusInfo, StatusSummary } from '@carpool/core'
import { sandboxSentences } from '@carpool/sandbox'
import type { Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import type { CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, formatBytes, formatDuration, formatShare, renderTable } from '../format.ts'
import { untilStopped } from '../until-stopped.ts'

interface StatusOptions extends ConnectionOptions {
  readonly watch?: boolean
}

const WATCH_INTERVAL_MS = 1000
/** Moves to the top left corner, and clears what is below and to the right of it. */
const CLEAR_SCREEN = '\u001b[H\u001b[J'

export const status: CliCommand<StatusOptions> = {
  jsonHelp: 'print one JSON document on stdout; with --watch one per line, every second',

  define(command) {
    command.option('-w, --watch', 'print it again every second, until Ctrl+C')
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nRUNNING counts the calls of a host that do not wait for a timer or a fetch, and its limit; ISOLATES those that are entered, and all.' +
        '\nRUN DELAY is how long what could have run waited for a core. The exit code is 0 also if the server is not ready.',
    )
  },

  async run({ options: { watch: isWatching, ...options }, io, output }) {
    const client = connect(options, { io, output })
    if (!isWatching) {
      const info = await client.status()
      return output.answer(info, renderStatus(info, io.stdout))
    }
    const isTerminal = 'isTTY' in io.stdout && io.stdout.isTTY === true
    const show = async (): Promise<void> => {
      const info = await client.status()
      const text = renderStatus(info, io.stdout)
      output.line(info, isTerminal ? CLEAR_SCREEN + text : `${text}\n`)
    }
    await watch(show, WATCH_INTERVAL_MS, untilStopped())
  },
}

/** Shows something again and again until it is stopped; the first time at once. @throws what `show` throws */
export async function watch(show: () => Promise<void>, intervalMs: number, stopped: Promise<unknown>): Promise<void> {
  const controller = new AbortController()
  void stopped.then(() => controller.abort())
  const { signal } = controller
  while (!signal.aborted) {
    await show()
    await wait(intervalMs, undefined, { signal }).catch(() => {})
  }
}

/** Decisions that are shown; `--json` has them all. */
const MAX_DECISIONS = 5

const HOST_COLUMNS: readonly Column<HostInfo>[] = [
  { title: 'HOST', align: 'right', text: ({ id }) => String(id) },
  { title: 'PID', align: 'right', text: ({ pid }) => String(pid) },
  { title: 'STATE', text: ({ state, quarantineOf }) => (quarantineOf === undefined ? state : `${state}, only ${quarantineOf}`) },
  { title: 'SATURATION', align: 'right', text: ({ saturation }) => formatShare(saturation, 1) },
  { title: 'CPU', align: 'right', text: ({ cpuCores }) => cpuCores.toFixed(2) },
  { title: 'LOOP', align: 'right', text: ({ loopUtilization }) => formatShare(loopUtilization, 1) },
  { title: 'LATE', align: 'right', text: ({ loopDelayMs }) => formatMs(loopDelayMs) },
  { title: 'RUN DELAY P50', align: 'right', text: ({ runDelayMs }) => formatMs(runDelayMs.p50) },
  { title: 'P90', align: 'right', text: ({ runDelayMs }) => formatMs(runDelayMs.p90) },
  { title: 'P99', align: 'right', text: ({ runDelayMs }) => formatMs(runDelayMs.p99) },
  { title: 'RUNNING', align: 'right', text: ({ running, limit }) => `${running}/${Math.floor(limit)}` },
  { title: 'IN FLIGHT', align: 'right', text: ({ inFlight }) => String(inFlight) },
  { title: 'ISOLATES', align: 'right', text: ({ enteredIsolates, isolates }) => `${enteredIsolates}/${isolates}` },
  { title: 'MEMORY', align: 'right', text: ({ memoryBytes }) => formatBytes(memoryBytes) },
  { title: 'STARTED', text: ({ startedAt }) => startedAt },
]

const DECISION_COLUMNS: readonly Column<ScalingDecisionInfo>[] = [
  { title: 'DECIDED', text: ({ at }) => at },
  { title: 'ACTION', text: ({ action }) => action },
  { title: 'HOSTS', text: ({ hostsBefore, hostsAfter }) => `${hostsBefore} -> ${hostsAfter}` },
  { title: 'REASON', text: ({ reason }) => reason },
  { title: 'FIGURES', text: ({ figures }) => pairs(figures, '=') },
]

/** How a server fares, for people: a few lines, its hosts, and what was decided last. */
export function renderStatus(status: StatusInfo | StatusSummary, stream: Writable): string {
  if (!('hosts' in status)) return stripVTControlCharacters(heading(status).join('\n'))
  const { hosts } = status
  const decisions = status.decisions.slice(0, MAX_DECISIONS)
  return [
    stripVTControlCharacters(summary(status)),
    hosts.length > 0 ? renderTable(HOST_COLUMNS, hosts, stream) : 'There are no host processes.',
    ...(decisions.length > 0 ? [renderTable(DECISION_COLUMNS, decisions, stream)] : []),
  ].join('\n\n')
}

function summary(status: StatusInfo): string {
  const { cores, machineBusyCores, inFlight, queued, open, shed, failedStarts } = status
  const refused = pairs(Object.fromEntries(Object.entries(shed).filter(([, count]) => count > 0)), ' ')
  return [
    ...heading(status),
    `${inFlight} in flight, ${queued} of them queued. Refused so far: ${refused === '' ? 'none' : refused}.`,
    // A server of before says nothing of it.
    ...(open === undefined ? [] : [describeOpen(open)]),
    `${machineBusyCores.toFixed(2)} of ${Number(cores.toFixed(2))} cores are busy.`,
    ...describeFailedStarts(failedStarts),
  ].join('\n')
}

function heading({ version, state, reasons, uptimeMs, sandbox }: StatusSummary): readonly string[] {
  return [
    `Carpool ${version} is ${state.replace('-', ' ')}, up for ${formatMs(uptimeMs)}.`,
    ...reasons.map((reason) => `  ${reason}`),
    // A server of before says nothing of it.
    ...(sandbox === undefined ? [] : [sandboxSentences(sandbox).join(' ')]),
  ]
}

function describeOpen({ answer, websocket, socket }: StatusInfo['open']): string {
  const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
  return `Open: ${counted(answer, 'streamed answer')}, ${counted(websocket, 'WebSocket')}, ${counted(socket, 'socket')}.`
}

function describeFailedStarts({ inRow, nextAttemptInMs, last }: FailedStartsInfo): readonly string[] {
  if (inRow === 0) return []
  const next = nextAttemptInMs > 0 ? ` The next one is in ${formatMs(nextAttemptInMs)}.` : ''
  return [`The last ${inRow === 1 ? 'start of a host' : `${inRow} starts of hosts`} failed${last ? `: ${last}` : ''}.${next}`]
}

function pairs(record: Readonly<Record<string, number>>, between: string): string {
  return Object.entries(record)
    .map(([name, value]) => `${name}${between}${Number.isInteger(value) ? value : Number(value.toPrecision(3))}`)
    .join(', ')
}

function formatMs(ms: number): string {
  return formatDuration(ms * 1000)
}
