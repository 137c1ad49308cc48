/**
 * Whether the CPU time on the records is right: against calibrated loops, the system's own figures and a burning neighbour; and
 * what metering costs.
 */
import { join } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { Caller } from '../lib/caller.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { publish } from '../lib/report.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import type { Verdict } from '../lib/verdict.ts'
import { measureAccuracy, measureSleepers } from './accuracy.ts'
import { accuracyBlock, conservationBlock, neighbourBlock, throughputBlock } from './blocks.ts'
import { checkAccuracy, checkConservation, checkNeighbour, checkThroughput } from './checks.ts'
import { measureConservation } from './conservation.ts'
import { ONE_HOST } from './one-host.ts'
import { measureNeighbour } from './neighbour.ts'
import { measureThroughput } from './throughput.ts'

/** The last commit before there was metering. */
const BEFORE_METERING = '202b007'

const options = benchArguments('npm run bench:metering -- [options]', {
  only: { help: 'parts to measure, between commas', default: 'accuracy,conservation,neighbour,throughput' },
  seconds: { help: 'how long the mixed load runs', default: '10' },
  rounds: {
    help: 'how often the waiting function runs alone and beside the burning one, and each version is loaded',
    default: '6',
  },
  against: { help: 'commit that throughput is compared with', default: BEFORE_METERING },
})
const durationMs = options.whole('seconds', 1) * 1000
const rounds = options.whole('rounds', 1)
const ROUND_MS = 5000
const style = options.markdown ? 'markdown' : 'plain'
const environment = readEnvironment()

interface Measured {
  readonly block: string
  readonly verdicts: readonly Verdict[]
  readonly results: unknown
}

const PARTS: Readonly<Record<string, (dataDir: string) => Promise<Measured>>> = {
  accuracy: async (dataDir) => {
    await using server = await startCarpool({ dataDir, flags: ONE_HOST })
    using caller = new Caller()
    const loads = await measureAccuracy(server, caller)
    const sleepersUs = await measureSleepers(server, caller)
    const results = { loads, sleepersUs }
    return { block: accuracyBlock(loads, sleepersUs, style), verdicts: checkAccuracy(loads, sleepersUs), results }
  },
  conservation: async (dataDir) => {
    const results = await measureConservation(dataDir, durationMs)
    return { block: conservationBlock(results, style), verdicts: checkConservation(results), results }
  },
  neighbour: async (dataDir) => {
    const results = await measureNeighbour(dataDir, rounds, ROUND_MS)
    return { block: neighbourBlock(results, style), verdicts: checkNeighbour(results), results }
  },
  throughput: async () => {
    const results = await measureThroughput({ commit: options.text('against'), rounds, durationMs: ROUND_MS })
    return { block: throughputBlock(results, rounds, style), verdicts: checkThroughput(results), results }
  },
}

const wanted = options.words('only', Object.keys(PARTS))
const measured: Array<Measured & { readonly name: string }> = []
for (const [name, measure] of Object.entries(PARTS)) {
  if (!wanted.has(name)) continue
  await using folder = await temporaryFolder()
  measured.push({ name, ...(await measure(join(folder.path, 'data'))) })
}

publish(
  {
    bench: 'metering',
    title: 'CPU time on the records, and what metering costs',
    environment,
    blocks: measured.map(({ block }) => block),
    verdicts: measured.flatMap(({ verdicts }) => verdicts),
    results: Object.fromEntries(measured.map(({ name, results }) => [name, results])),
  },
  options,
)
