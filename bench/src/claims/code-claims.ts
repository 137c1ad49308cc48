import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryPath } from '../lib/repository.ts'
import { inWords, whole } from './words.ts'

/** A statement of the texts that the code decides: a default, a limit, a size. Nothing has to run for it. */
export interface CodeClaim {
  readonly name: string
  /** What stands between the markers. @throws Error if the code has no such thing any more */
  readonly text: () => string
}

/** Names that stand in products of the code. */
const DAY_MS = 86_400_000
const FACTORS: Readonly<Record<string, number>> = { DAY_MS, KIB: 2 ** 10, MEBIBYTE: 2 ** 20 }
const NUMBER = String.raw`[\d_.]+(?: (?:\*{1,2}|/) [\w.]+)*`

/**
 * The number that a file gives to a name: `const NAME = 10_000`, `name: 0.8`, `name = 8 * 1024`. Such names belong to their
 * files, so they are read rather than exported for this. @throws RangeError if the file does not give it exactly one number
 */
function constant(path: string, name: string, before = ''): number {
  const source = readFileSync(repositoryPath(path), 'utf8')
  const given = source.matchAll(new RegExp(`${before}\\b${name}\\s*[=:(]\\s*(${NUMBER})(?![\\w.])`, 'gs'))
  const values = new Set([...given].map(([, product = '']) => calculated(product)))
  const [value] = values
  if (value === undefined || values.size !== 1) throw new RangeError(`${path} has not exactly one number for ${name}.`)
  return value
}

/** `8 * 1024` and `30 * DAY_MS` as a number. @throws RangeError if a name in it is not known */
function calculated(product: string): number {
  const [first, ...factors] = product.split(/ (?=[*/])/)
  const value = factors.reduce(
    (total, part) => {
      const [operator = '', text = ''] = part.split(' ')
      const factor = FACTORS[text] ?? Number(text.replaceAll('_', ''))
      return operator === '**' ? total ** factor : operator === '*' ? total * factor : total / factor
    },
    Number(first?.replaceAll('_', '')),
  )
  if (!Number.isFinite(value)) throw new RangeError(`${product} is not known to be a number.`)
  return value
}

const milliseconds = (value: number): string => (value >= 1000 ? `${value / 1000} s` : `${value} ms`)
const bytes = (value: number): string => (value >= 2 ** 20 ? `${value / 2 ** 20} MiB` : `${value / 2 ** 10} KiB`)
const words = (value: number): string => inWords(value)
const inPercent = (value: number): string => `${Math.round(value * 100)} %`

function fromConstant(name: string, path: string, constantName: string, write: (value: number) => string): CodeClaim {
  return { name, text: () => write(constant(path, constantName)) }
}

const KILL_LADDER = 'packages/core/src/kill-ladder.ts'
const SETTINGS = 'packages/server/src/settings/table.ts'

/** The default of a setting: `name: { ...whole(10, …` */
function setting(name: string, settingName: string, write: (value: number) => string): CodeClaim {
  return { name, text: () => write(constant(SETTINGS, 'whole', `\\b${settingName}: \\{\\s*\\.\\.\\.`)) }
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
  fromConstant('most-poisoned', 'packages/fleet/src/pool/host-pool.ts', 'MAX_POISONED', words),
  fromConstant('overdue', 'packages/fleet/src/pool/host-connection.ts', 'OVERDUE_GRACE_MS', milliseconds),
  fromConstant('cold-place', 'packages/fleet/src/placement/placement-policy.ts', 'COLD_MS', milliseconds),
  fromConstant('long-entry', 'host/src/scheduler/run-scheduler.ts', 'LONG_ENTRY_MS', milliseconds),
  fromConstant('linger', 'host/src/host.ts', 'LINGER_MS', milliseconds),
  fromConstant('entry-look', 'host/src/scheduler/run-scheduler.ts', 'CHECK_MS', milliseconds),
  fromConstant('answer-hold', 'host/src/limits/watchdog.ts', 'HOLD_MS', milliseconds),
  fromConstant('limit-step', 'packages/fleet/src/scaling/host-limit.ts', 'STEP_MS', milliseconds),
  fromConstant('scaling-look', 'packages/fleet/src/fleet.ts', 'TICK_MS', milliseconds),
  setting('saturation', 'saturationPercent', (value) => `${value} %`),
  setting('saturation-window', 'saturationWindowMs', milliseconds),
  setting('panic', 'panicPercent', (value) => `${value} %`),
  setting('panic-window', 'panicWindowMs', milliseconds),
  setting('entry-slice', 'entrySliceMs', milliseconds),
  setting('body-limit', 'maxBodyBytes', bytes),
  fromConstant('descriptors', 'packages/sandbox/src/command.ts', 'MAX_DESCRIPTORS', String),
  fromConstant('oom-score', 'packages/sandbox/src/command.ts', 'OOM_SCORE', String),
  fromConstant('tasks', 'packages/server/src/hosts/host-sandbox.ts', 'TASKS_BESIDES', String),
  fromConstant('expired-tokens', 'packages/access/src/token-store.ts', 'KEPT_EXPIRED_MS', (value) => `${value / DAY_MS} days`),
  fromConstant('failed-attempts', 'packages/access/src/failed-attempts.ts', 'burst', String),
  fromConstant('failed-attempts-pace', 'packages/access/src/failed-attempts.ts', 'forgetMs', milliseconds),
  fromConstant('secrets', 'packages/access/src/secret-rules.ts', 'MAX_SECRETS', String),
  fromConstant('secret-size', 'packages/access/src/secret-rules.ts', 'MAX_SECRET_BYTES', bytes),
  fromConstant('undeployed', 'packages/server/src/deploy/deployer.ts', 'MAX_UNDEPLOYED', String),
  fromConstant('audit-file', 'packages/access/src/audit-log.ts', 'maxFileBytes', bytes),
  fromConstant('audit-files', 'packages/access/src/audit-log.ts', 'olderFiles', words),
  fromConstant('deploy-body', 'packages/server/src/control-plane/function-routes.ts', 'BODY_BYTES_PER_BUNDLE_BYTE', String),
  fromConstant('least-deploy-body', 'packages/server/src/control-plane/function-routes.ts', 'MIN_DEPLOY_BODY_BYTES', bytes),
  fromConstant('around-body', 'packages/server/src/control-plane/invoke-routes.ts', 'AROUND_BODY_BYTES', bytes),
  fromConstant('control-connections', 'packages/server/src/control-plane/control-plane.ts', 'MAX_CONNECTIONS', String),
  fromConstant('other-body', 'packages/server/src/control-plane/control-plane.ts', 'BODY_LIMIT_BYTES', bytes),
  fromConstant('waiting-deploys', 'packages/server/src/deploy/deploy-turns.ts', 'MAX_WAITING', String),
  fromConstant('disk-reserve', 'packages/registry/src/blob-store.ts', 'MAX_RESERVE_BYTES', bytes),
  fromConstant('disk-reserve-part', 'packages/registry/src/blob-store.ts', 'RESERVE_PART', inPercent),
  fromConstant('billed-grace', 'host/src/limits/watchdog.ts', 'BILLED_GRACE_MS', milliseconds),
  fromConstant('memory-look-cpu', 'host/src/limits/memory.ts', 'EVERY_CPU_NS', (value) => milliseconds(value / 1e6)),
  fromConstant('memory-stock', 'packages/core/src/host-memory.ts', 'stockBytes', bytes),
  fromConstant('memory-besides', 'packages/core/src/host-memory.ts', 'besidesBytes', bytes),
  fromConstant('guest-sockets', 'packages/core/src/limits.ts', 'MAX_SOCKETS_PER_GUEST', String),
  fromConstant('response-headers', 'packages/core/src/limits.ts', 'count', String),
  fromConstant('response-header-size', 'packages/core/src/limits.ts', 'bytes', bytes),
  fromConstant('form-parts', 'packages/runtime/src/guest/libraries/files/multipart.ts', 'MAX_PARTS', whole),
  fromConstant('form-head', 'packages/runtime/src/guest/libraries/files/multipart.ts', 'MAX_PART_HEAD', bytes),
  fromConstant('message-length', 'packages/runtime/src/guest/web-api/errors.ts', 'MESSAGE_CHARS', whole),
  fromConstant('stack-length', 'packages/runtime/src/guest/web-api/errors.ts', 'STACK_CHARS', whole),
  fromConstant('log-length', 'packages/runtime/src/guest/web-api/console/console.ts', 'TEXT_CHARS', whole),
  fromConstant('least-buffer', 'packages/runtime/src/guest/memory/reservation.ts', 'LEAST_BYTES', bytes),
  fromConstant('sharers', 'packages/runtime/src/guest/memory/reservation.ts', 'SHARERS', String),
  fromConstant('date-format', 'packages/runtime/src/guest/memory/guest-intl.ts', 'DATES', bytes),
  fromConstant('wasm-code', 'packages/runtime/src/guest/web-assembly/namespace.ts', 'CODE_FACTOR', words),
  {
    name: 'entry-clock-size',
    text: () => `${Math.round(statSync(repositoryPath('host/native/prebuilt/linux-x64-147.node')).size / 1024)} KB`,
  },
]
