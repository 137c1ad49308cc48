import { benchArguments } from './arguments.ts'
import { readEnvironment } from './environment.ts'
import { progress, publish } from './report.ts'
import type { Measured, Scenario, ScenarioOptions } from './scenario.ts'

export interface ScenarioBench {
  /** Short name: of the command, and of the file with the results. */
  readonly bench: string
  readonly title: string
  /** In the order in which they run. */
  readonly scenarios: Readonly<Record<string, Scenario>>
  /** Those that take minutes however they are cut: `--quick` leaves them out. Default: none. */
  readonly long?: ReadonlySet<string>
}

/** The main program of a bench of scenarios: runs those that the command line asks for, and publishes what came of them. */
export async function runScenarios({ bench, title, scenarios, long = new Set() }: ScenarioBench): Promise<void> {
  const isQuick = takeFlag('--quick')
  const options = benchArguments(
    `npm run bench:${bench} -- [--quick] [options]\n\n--quick: shorter runs, and none that takes minutes`,
    {
      only: { help: 'scenarios, between commas', default: Object.keys(scenarios).join(',') },
    },
  )
  const wanted = options.words('only', Object.keys(scenarios))
  const environment = readEnvironment()
  const measured: Array<Measured & { readonly name: string }> = []
  for (const [name, measure] of Object.entries(scenarios)) {
    if (!wanted.has(name) || (isQuick && long.has(name))) continue
    progress(name)
    measured.push({ name, ...(await tryOut(name, measure, { isQuick, style: options.markdown ? 'markdown' : 'plain' })) })
  }
  publish(
    {
      bench,
      title: `${title}${isQuick ? ', in short' : ''}`,
      environment,
      blocks: measured.flatMap(({ blocks }) => blocks),
      verdicts: measured.flatMap(({ verdicts }) => verdicts),
      results: { isQuick, ...Object.fromEntries(measured.map(({ name, results }) => [name, results])) },
    },
    options,
  )
}

/** A scenario that breaks is a demand not met, and the others still run. */
async function tryOut(name: string, measure: Scenario, options: ScenarioOptions): Promise<Measured> {
  try {
    return await measure(options)
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
