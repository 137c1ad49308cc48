import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryPath } from '../lib/repository.ts'

/** A statement of the texts that the code decides: a default, a limit, a size. Nothing has to run for it. */
export interface CodeClaim {
  readonly name: string
  /** What stands between the markers. @throws Error if the code has no such thing any more */
  readonly text: () => string
}

/**
 * The number that a file gives to a name: `const NAME = 10_000`, `name: 0.8`, or a product. Such names belong to their files, so they are read rather
 * than exported for this. @throws RangeError if the file does not give it exactly one number
 */
function constant(path: string, name: string): number {
  const source = readFileSync(repositoryPath(path), 'utf8')
  const found = [
    ...source.matchAll(new RegExp(`^(?:export )?(?:const )?\\s*${name}\\s*[=:]\\s*([\\d_.]+(?: \\* [\\d_.]+)*),?$`, 'gm')),
  ]
  const [, product] = found[0] ?? []
  if (product === undefined || found.length !== 1) throw new RangeError(`${path} has not exactly one number for ${name}.`)
  return product.split(' * ').reduce((total, factor) => total * Number(factor.replaceAll('_', '')), 1)
}

const milliseconds = (value: number): string => (value >= 1000 ? `${value / 1000} s` : `${value} ms`)
const inPercent = (value: number): string => `${Math.round(value * 100)} %`

function fromConstant(name: string, path: string, constantName: string, write: (value: number) => string): CodeClaim {
  return { name, text: () => write(constant(path, constantName)) }
}

const KILL_LADDER = 'packages/containment/src/kill-ladder.ts'
const SCALING = 'packages/server/src/settings/scaling.ts'

/** The default of a setting. */
function setting(name: string, path: string, settingName: string, write: (value: number) => string): CodeClaim {
  return {
    name,
    text: () => {
      const source = readFileSync(repositoryPath(path), 'utf8')
      const [, value] = new RegExp(`\\b${settingName}: \\{[^}]*?\\bdefault: ([\\d_]+(?: \\* [\\d_]+)*)`, 's').exec(source) ?? []
      if (value === undefined) throw new RangeError(`${path} has no default of ${settingName}.`)
      return write(value.split(' * ').reduce((total, factor) => total * Number(factor.replaceAll('_', '')), 1))
    },
  }
}

/** The ids of the attacks as they stand in the tests; those that a test makes up of parts are not among them. */
function attackIds(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...readFileSync(join(folder, file), 'utf8').matchAll(/'([A-Z]\d{2}[a-z]?)'/g)].map(([, id = '']) => id))
}

/** Attacks that are in the tests and not in the table of what came of them: it is older than they are. */
export function missingAttacks(): string[] {
  const table = readFileSync(repositoryPath('docs/isolation.md'), 'utf8')
  const listed = new Set([...table.matchAll(/^(?:\| |- )([A-Z]\d{2}[a-z]?)(?: \||, )/gm)].map(([, id]) => id))
  return [...new Set(attackIds(repositoryPath('test/isolation')))].filter((id) => !listed.has(id)).toSorted()
}

export const CODE_CLAIMS: readonly CodeClaim[] = [
  fromConstant('poisoned-drain', KILL_LADDER, 'drainMs', milliseconds),
  fromConstant('dispose-grace', KILL_LADDER, 'disposeGraceMs', milliseconds),
  fromConstant('dispose-wait', KILL_LADDER, 'disposeWaitMs', milliseconds),
  fromConstant('silent-host', KILL_LADDER, 'silentMs', milliseconds),
  fromConstant('soft-share', KILL_LADDER, 'softShare', inPercent),
  fromConstant('wall-grace', KILL_LADDER, 'wallGraceMs', milliseconds),
  fromConstant(
    'most-poisoned',
    'packages/fleet/src/host-supply.ts',
    'MAX_POISONED',
    (value) => ['none', 'one', 'two', 'three', 'four'][value] ?? String(value),
  ),
  fromConstant('overdue', 'packages/fleet/src/host-connection.ts', 'OVERDUE_GRACE_MS', milliseconds),
  fromConstant('cold-place', 'packages/fleet/src/choose-host.ts', 'COLD_MS', milliseconds),
  fromConstant('long-entry', 'host/src/long-entries.ts', 'LONG_ENTRY_MS', milliseconds),
  fromConstant('linger', 'host/src/host.ts', 'LINGER_MS', milliseconds),
  fromConstant('entry-look', 'host/src/entered-watch.ts', 'LOOK_MS', milliseconds),
  fromConstant('answer-hold', 'host/src/stay-ender.ts', 'HOLD_MS', milliseconds),
  fromConstant('limit-step', 'packages/admission/src/host-limit.ts', 'STEP_MS', milliseconds),
  fromConstant('scaling-look', 'packages/fleet/src/scaler.ts', 'LOOK_MS', milliseconds),
  setting('saturation', SCALING, 'saturationPercent', (value) => `${value} %`),
  setting('saturation-window', SCALING, 'saturationWindowMs', milliseconds),
  setting('panic', SCALING, 'panicPercent', (value) => `${value} %`),
  setting('panic-window', SCALING, 'panicWindowMs', milliseconds),
  setting('entry-slice', 'packages/server/src/settings/isolates.ts', 'entrySliceMs', milliseconds),
  setting('body-limit', 'packages/server/src/settings/network.ts', 'maxBodyBytes', (value) => `${value / 2 ** 20} MiB`),
  fromConstant('descriptors', 'packages/sandbox/src/cage-command.ts', 'MAX_DESCRIPTORS', String),
  fromConstant('oom-score', 'packages/sandbox/src/cage-command.ts', 'OOM_SCORE', String),
  fromConstant('tasks', 'packages/server/src/host-sandbox.ts', 'TASKS_BESIDES', String),
  {
    name: 'entry-clock-size',
    text: () => `${Math.round(statSync(repositoryPath('packages/isolate/native/prebuilt/linux-x64-147.node')).size / 1024)} KB`,
  },
]
