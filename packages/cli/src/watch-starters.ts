import { readProcess } from '@carpool/server/discovery'
import { fstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { findStarters, type Starter } from './starters.ts'

const LOOK_INTERVAL_MS = 500
/** So long a hang-up may take to end the others whom it was sent to, on a machine that is busy. */
const HANG_UP_MS = 2_000

export interface StarterWatch {
  /** npm passes on to this process, or to its launcher, the signals that it gets. */
  readonly isNextToNpm: boolean
  /** Under nohup SIGHUP is not to end this process. */
  readonly ignoresHangUp: boolean
  /** To be called when one came: what it ends of npm is then not missed. */
  hungUp(): void
  stop(): void
}

/**
 * Watches the processes that this one must not outlive (see {@link findStarters}). It keeps no process alive.
 * @param onGone called once, with the first one found gone; undefined if that was before the first look
 */
export function watchStarters(onGone: (starter: Starter | undefined) => void): StarterWatch {
  const first = look()
  let { watched } = first
  let hungUpAtMs = -Infinity
  const check = (): void => {
    const gone = firstGone(watched)
    if (gone === undefined) return
    if (performance.now() - hungUpAtMs < HANG_UP_MS) ({ watched } = look())
    else report(gone)
  }
  // Not at once: a signal that ended it may be for us as well, and is heard of before the end of this turn of the event loop.
  const timer = setInterval(() => firstGone(watched) !== undefined && setImmediate(check), LOOK_INTERVAL_MS).unref()
  const stop = (): void => clearInterval(timer)
  const report = (starter?: Starter): void => {
    stop()
    onGone(starter)
  }
  if (first.isOrphan) setImmediate(report)
  return {
    isNextToNpm: first.isNextToNpm,
    ignoresHangUp: first.isUnderNohup,
    hungUp: () => (hungUpAtMs = performance.now()),
    stop,
  }
}

function look(): ReturnType<typeof findStarters> {
  return findStarters({
    self: { pid: process.pid, parentPid: process.ppid },
    read: readProcess,
    // It begins with the name and version of the package manager.
    isUnderNpm: process.env['npm_config_user_agent']?.startsWith('npm/') ?? false,
    hasLauncher: process.connected,
    isUnderNohup,
  })
}

/**
 * A process that loses its parent gets another: ids that are used again do not matter, nor does a parent that is still a
 * zombie.
 */
function firstGone(watched: readonly Starter[]): Starter | undefined {
  let parentPid: number | undefined = process.ppid
  for (const starter of watched) {
    if (starter.pid !== parentPid) return starter
    parentPid = readProcess(starter.pid)?.parentPid
  }
  return undefined
}

const ACCESS_MODES = 0o3
const WRITE_ONLY = 0o1

/**
 * Whether this process's command was started by nohup. That a hang-up is to be ignored cannot be asked for: Node.js takes all
 * signals back to their defaults when it starts. What is left are three traces, of which one may be missing: a shell names the
 * program that it starts in `_`; nohup puts /dev/null in place of a terminal as stdin, for writing only; and in place of one as
 * stdout, a file of its own name.
 * @param topPid topmost process of the command, whose environment is what nohup left: a shell below it may have set `_` anew
 * @param aboveTopPid its parent. If that has the same in its environment, it was started by nohup itself, and passed it on.
 */
export function isUnderNohup(topPid: number, aboveTopPid: number): boolean {
  const isNamed = [process.env['_'], variableOf(topPid, '_')].some(isNohup) && !isNohup(variableOf(aboveTopPid, '_'))
  return isNamed || isStdinNull() || isStdoutNohup()
}

function isNohup(path: string | undefined): boolean {
  return path !== undefined && basename(path) === 'nohup'
}

function variableOf(pid: number, name: string): string | undefined {
  const variables = attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')) ?? []
  return variables.find((variable) => variable.startsWith(`${name}=`))?.slice(name.length + 1)
}

function isStdinNull(): boolean {
  const flags = attempt(() => /^flags:\s*([0-7]+)/m.exec(readFileSync('/proc/self/fdinfo/0', 'utf8'))?.[1])
  if (flags === undefined || (Number.parseInt(flags, 8) & ACCESS_MODES) !== WRITE_ONLY) return false
  return attempt(() => fstatSync(0).rdev === statSync('/dev/null').rdev) ?? false
}

function isStdoutNohup(): boolean {
  return basename(attempt(() => readlinkSync('/proc/self/fd/1')) ?? '') === 'nohup.out'
}

/** What there is no `/proc` for, or not for us, is undefined. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
