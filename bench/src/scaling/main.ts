/** What the product claims of scaling, with real processes: who gets a host, who is refused, and who notices. */
import { benchArguments } from '../lib/arguments.ts'
import { readEnvironment } from '../lib/environment.ts'
import { progress, publish } from '../lib/report.ts'
import type { Measured, Scenario } from './scenario.ts'
import { measureBurn } from './scenarios/burn.ts'
import { measureDeparted } from './scenarios/departed.ts'
import { measureFlood } from './scenarios/flood.ts'
import { measureMetrics } from './scenarios/metrics.ts'
import { measureOverload } from './scenarios/overload.ts'
import { measureScaleIn } from './scenarios/scale-in.ts'
import { measureShutdown } from './scenarios/shutdown.ts'
import { measureSleepers } from './scenarios/sleepers.ts'
import { measureUpstream } from './scenarios/upstream.ts'
import { measureUtilization } from './scenarios/utilization.ts'
import { measureWave } from './scenarios/wave.ts'

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'sleepers': measureSleepers,
  'burn': measureBurn,
  'overload': measureOverload,
  'wave': measureWave,
  'upstream': measureUpstream,
  'flood': measureFlood,
  'utilization': measureUtilization,
  'departed': measureDeparted,
  'shutdown': measureShutdown,
  'scale-in': measureScaleIn,
  'metrics': measureMetrics,
}
/** They take minutes however they are cut. */
const LONG: ReadonlySet<string> = new Set(['wave'])

const isQuick = takeFlag('--quick')
const options = benchArguments(
  'npm run bench:scaling -- [--quick] [options]\n\n--quick: shorter runs, and none that takes minutes',
  {
    only: { help: 'scenarios, between commas', default: Object.keys(SCENARIOS).join(',') },
  },
)
const wanted = new Set(options.text('only').split(','))
for (const name of wanted) {
  if (Object.hasOwn(SCENARIOS, name)) continue
  progress(`--only knows ${Object.keys(SCENARIOS).join(', ')}, not ${JSON.stringify(name)}.`)
  process.exit(2)
}
const environment = readEnvironment()
const measured: Array<Measured & { readonly name: string }> = []
for (const [name, measure] of Object.entries(SCENARIOS)) {
  if (!wanted.has(name) || (isQuick && LONG.has(name))) continue
  progress(name)
  measured.push({ name, ...(await tryOut(name, measure)) })
}

publish(
  {
    bench: 'scaling',
    title: `Scaling${isQuick ? ', in short' : ''}`,
    environment,
    blocks: measured.flatMap(({ blocks }) => blocks),
    verdicts: measured.flatMap(({ verdicts }) => verdicts),
    results: { isQuick, ...Object.fromEntries(measured.map(({ name, results }) => [name, results])) },
  },
  options,
)

/** A scenario that breaks is a demand not met, and the others still run. */
async function tryOut(name: string, measure: Scenario): Promise<Measured> {
  try {
    return await measure({ isQuick, style: options.markdown ? 'markdown' : 'plain' })
  } catch (error) {
    const detail = (error as Error).stack ?? String(error)
    progress(detail)
    return {
      blocks: [],
      verdicts: [{ kind: 'demand', claim: `${name}: comes to its end`, isMet: false, detail: (error as Error).message }],
      results: { error: detail },
    }
  }
}

/** What the other benches do not have: their options all take a value. */
function takeFlag(flag: string): boolean {
  const index = process.argv.indexOf(flag)
  if (index > 0) process.argv.splice(index, 1)
  return index > 0
}
