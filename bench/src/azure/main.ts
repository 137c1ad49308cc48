/** Real traffic, replayed: whether hosts follow the CPU that is used rather than the calls that are under way. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { benchArguments } from '../lib/arguments.ts'
import { readEnvironment } from '../lib/environment.ts'
import { progress, publish } from '../lib/report.ts'
import { repositoryPath } from '../lib/repository.ts'
import { figuresOf } from './figures.ts'
import { planReplay } from './replay-plan.ts'
import { checkReplay, replayBlocks, replayNote, replayPicture, replaySeries } from './replay-report.ts'
import { runReplay } from './replay.ts'
import { readSample } from './sample.ts'

/** Defaults of the server, which are divided by the scale like all other times. */
const SHRINK_WINDOW_MS = 60_000
const SHRINK_PAUSE_MS = 20_000
/** The least that the server takes. */
const LEAST_SHRINK_WINDOW_MS = 1_000

const options = benchArguments('npm run bench:azure -- [options]', {
  sample: {
    help: 'folder of the Azure Functions 2019 sample, or of the slice in bench/data; else CARPOOL_AZURE_SAMPLE says it',
    default: '',
  },
  minutes: { help: 'how many minutes of the sample', default: '60' },
  scale: { help: 'how many times faster than it was', default: '6' },
  cores: { help: 'mean CPU of all calls together, in hundredths of a core', default: '60' },
  seed: { help: 'of arrivals, durations and shares of CPU', default: '2019' },
})
const folder = options.text('sample') || (process.env['CARPOOL_AZURE_SAMPLE'] ?? '')
if (folder === '') {
  progress(
    'Say where the sample is: --sample <folder> or CARPOOL_AZURE_SAMPLE. A slice of it is in bench/data/azure-functions-2019.',
  )
  process.exit(2)
}
const [minutes, scale, seed] = [options.whole('minutes', 1), options.whole('scale', 1), options.whole('seed')]
const environment = readEnvironment()
const flags = Object.entries({
  'shrink-window-ms': Math.max(LEAST_SHRINK_WINDOW_MS, Math.round(SHRINK_WINDOW_MS / scale)),
  'shrink-pause-ms': Math.round(SHRINK_PAUSE_MS / scale),
}).flatMap(([flag, value]) => [`--${flag}`, String(value)])

const plan = planReplay(readSample(folder), { minutes, scale, cores: options.whole('cores', 1) / 100, seed })
const replayed = await runReplay(plan, flags)
const figures = figuresOf(replayed, plan.durationMs)
const note = replayNote(plan, minutes, scale)
if (options.save) {
  const file = 'bench/results/azure.svg'
  mkdirSync(repositoryPath('bench/results'), { recursive: true })
  writeFileSync(repositoryPath(file), replayPicture(figures, note))
  progress(`saved ${file}`)
}

const { load, decisions, longestGapMs } = replayed
const { correlations, good, refused, failed } = figures
publish(
  {
    bench: 'azure',
    title: `Azure Functions 2019: ${note}, ${Math.round(plan.durationMs / 1000)} s, ${flags.join(' ')}`,
    environment,
    blocks: replayBlocks(plan, replayed, figures, options.markdown ? 'markdown' : 'plain'),
    verdicts: checkReplay(figures),
    results: {
      options: { minutes, scale, seed, flags },
      plan: { functions: plan.functionNames.length, calls: plan.calls.length, cores: plan.cores },
      refused,
      failed,
      good,
      correlations,
      decisions,
      bench: { longestGapMs, latestStartMs: load.latestStartMs, generatorCores: load.generatorCores },
      series: replaySeries(figures),
    },
  },
  options,
)
