/** The seed experiment: 1, 10 and 100 calls at once to three ways of running one and the same file. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { readEnvironment } from '../lib/environment.ts'
import { seconds } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { repositoryPath } from '../lib/repository.ts'
import { renderTable } from '../lib/table.ts'
import { billOf } from './bill.ts'
import { checkSeed, FEW } from './checks.ts'
import { COLUMNS } from './columns.ts'
import { measureWay, middleOf, type Measurement } from './measurement.ts'
import { defaultProcessCap } from './process-cap.ts'
import type { Way } from './way.ts'
import { createWays } from './ways.ts'

const options = benchArguments('npm run demo -- [options]', {
  calls: { help: 'numbers of calls at once', default: '1,10,100' },
  rounds: { help: `how often Carpool and plain Node take turns with ${FEW} calls; the middle one counts`, default: '3' },
  cap: { help: 'most processes of the process-per-call way, at least 1; 0: as many as memory allows', default: '0' },
  function: { help: 'the function, a CommonJS file with a Lambda handler', default: repositoryPath('examples/seed/index.js') },
})
const file = resolve(options.text('function'))
const callCounts = options.wholes('calls')
const pairRounds = options.whole('rounds', 1)
const processCap = options.whole('cap') || defaultProcessCap(process.availableMemory())
const environment = readEnvironment()
const ways = createWays({ file, processCap })

const all: Measurement[] = []
const measurements: Measurement[] = []
for (const calls of callCounts) {
  const rounds = calls === FEW ? pairRounds : 1
  const measured: Measurement[] = []
  for (let round = 0; round < rounds; round++) {
    // The pair takes turns in who comes first; the third way is far off, and once is enough.
    const pair = ways.slice(0, 2)
    const others = round === 0 ? ways.slice(2) : []
    for (const way of [...(round % 2 === 0 ? pair : pair.toReversed()), ...others]) measured.push(await measure(way, calls))
  }
  all.push(...measured)
  for (const { key } of ways) measurements.push(middleOf(measured.filter(({ way }) => way === key)))
}

async function measure(way: Way, calls: number): Promise<Measurement> {
  progress(`${way.title}: ${calls} ${calls === 1 ? 'call' : 'calls at once'} ...`)
  const measurement = await measureWay(way, calls)
  progress(`  answered within ${seconds(measurement.slowestMs)}`)
  for (const line of measurement.failureLines) progress(`  failed: ${line}`)
  return measurement
}

const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
publish(
  {
    bench: 'seed',
    title: 'The seed experiment: one file, three ways of running it',
    environment,
    blocks: [
      renderTable(COLUMNS, measurements, options.markdown ? 'markdown' : 'plain'),
      ...measurements
        .filter(({ way, calls }) => way === 'carpool' && calls === FEW)
        .map((measurement) => billOf(measurement, options.markdown ? 'markdown' : 'plain')),
      [
        `The file: ${relative(repositoryPath(''), file)}, SHA-256 ${sha256.slice(0, 16)}, the same for all ways.`,
        ...ways.flatMap(({ note }) => note ?? []),
        ...(callCounts.includes(FEW)
          ? [`With ${FEW} calls, Carpool and plain Node took ${pairRounds} turns: the row is the one with the middle slowest.`]
          : []),
        'processes: most at one time, with the ones that stand in front; with code: those that ran the function; standby: host processes that are',
        '  started, to take over at once, and have run nothing, by what the server says of them after the last answer.',
        `memory: ${memoryText(measurements)}; of it standby is part of the peak; memory and CPU from the first call to the last answer, of all processes of the way.`,
      ].join('\n'),
    ],
    verdicts: checkSeed(all),
    results: { sha256, processCap, measurements: all },
  },
  options,
)

function memoryText(of: readonly Measurement[]): string {
  return of.every(({ usage }) => usage.memoryKind === 'pss')
    ? 'proportional set size, which counts shared pages once'
    : 'resident set size, which counts shared pages for each process'
}
