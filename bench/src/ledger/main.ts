/** A million records: how fast they are written, what they take on disk, and how long questions about them take. */
import { join } from 'node:path'
import { openLedger } from '@carpool/ledger'
import { benchArguments } from '../lib/arguments.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { megabytes, milliseconds, seconds } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { median } from '../lib/statistics.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atMost } from '../lib/verdict.ts'
import { askEverything, type QuestionResult } from './asking.ts'
import { ledgerBytes, writeRecords } from './writing.ts'

const USAGE_LIMIT_MS = 1000
/** More than the records are spread over, so that none is deleted meanwhile. */
const RETENTION_DAYS = 365

const options = benchArguments('npm run bench:ledger -- [options]', {
  'records': { help: 'how many are written', default: '1000000' },
  'at-once': { help: 'records that wait to be written at the same time', default: '64' },
  'times': { help: 'how often each question is asked', default: '7' },
})
const count = options.whole('records', 1)
const atOnce = options.whole('at-once', 1)
const environment = readEnvironment()

await using folder = await temporaryFolder()
const dataDir = join(folder.path, 'data')
progress(`writing ${count} records, ${atOnce} at a time`)
const ledger = await openLedger(dataDir, {
  retentionDays: RETENTION_DAYS,
  onProblem: ({ message }) => {
    throw new Error(message)
  },
})
const writing = await writeRecords(ledger, count, atOnce, Date.now())
await ledger.close()
const bytes = await ledgerBytes(dataDir)

const openingMs = performance.now()
await using server = await startCarpool({ dataDir, flags: ['--retention-days', String(RETENTION_DAYS)] })
const openedMs = performance.now() - openingMs
progress('asking')
const questions = await askEverything(server, options.whole('times', 1))

const COLUMNS: ReadonlyArray<Column<QuestionResult>> = [
  { title: 'command', align: 'left', text: ({ command }) => command },
  { title: 'rows', text: ({ rows }) => String(rows) },
  { title: 'median', text: ({ commandMs }) => milliseconds(median(commandMs)) },
  { title: 'slowest', text: ({ commandMs }) => milliseconds(Math.max(...commandMs)) },
  { title: 'request alone', text: ({ requestMs }) => milliseconds(median(requestMs)) },
  { title: 'slowest request', text: ({ requestMs }) => milliseconds(Math.max(...requestMs)) },
]

publish(
  {
    bench: 'ledger',
    title: `A ledger of ${count} records`,
    environment,
    blocks: [
      [
        `Written with ${atOnce} at a time: ${Math.round(writing.recordsPerSecond)} records per second, ${writing.cpuUsPerRecord.toFixed(1)} µs of`,
        `CPU for each, ${writing.callerCpuUsPerRecord.toFixed(1)} µs of them on the thread that serves.`,
        `On disk: ${megabytes(bytes)}, ${(bytes / count).toFixed(1)} bytes per record. A server on it is ready after ${seconds(openedMs)}.`,
      ].join(' '),
      renderTable(COLUMNS, questions, options.markdown ? 'markdown' : 'plain'),
    ],
    verdicts: questions
      .filter(({ command }) => command.startsWith('carpool usage'))
      .map(({ command, commandMs }) => atMost('demand', `${command}, median`, median(commandMs), USAGE_LIMIT_MS, milliseconds)),
    results: { count, atOnce, writing, bytes, openedMs, questions },
  },
  options,
)
