import { readProcess } from '@carpool/server/discovery'
import { isUnderNohup } from './nohup.ts'
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
 * @param onGone is told once, of the first one found gone; undefined if nobody saw it
 */
export function watchStarters(onGone: (starter: Starter | undefined) => void): StarterWatch {
  const first = look()
  let { watched } = first
  let hungUpAtMs = -Infinity
  const check = (): void => {
    const gone = firstGone(watched)
    if (gone === undefined) return
    if (performance.now() - hungUpAtMs < HANG_UP_MS) ({ watched } = look())
    else tell(gone)
  }
  // Not at once: a signal that ended it may be for us as well, and is heard of before the end of this turn of the event loop.
  const timer = setInterval(() => firstGone(watched) !== undefined && setImmediate(check), LOOK_INTERVAL_MS).unref()
  const stop = (): void => clearInterval(timer)
  const tell = (starter?: Starter): void => {
    stop()
    onGone(starter)
  }
  if (first.isOrphan) setImmediate(tell)
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

/** Who loses its parent gets another: ids that are used again do not matter, nor does an end that nobody has asked for. */
function firstGone(watched: readonly Starter[]): Starter | undefined {
  let parentPid: number | undefined = process.ppid
  for (const starter of watched) {
    if (starter.pid !== parentPid) return starter
    parentPid = readProcess(starter.pid)?.parentPid
  }
  return undefined
}
