import type { ProcessReading } from '@carpool/server/discovery'

/** A process with whose end this one ends too. */
export interface Starter {
  readonly pid: number
  /** Undefined where the system does not say. */
  readonly name?: string
}

export interface Starters {
  /** From the parent up, each the parent of the one before. */
  readonly watched: readonly Starter[]
  /** The launcher or npm started this process, and was gone before anybody looked. */
  readonly isOrphan: boolean
  /** npm is next to the command, with no shell between, and passes on the signals that it gets. */
  readonly isNextToNpm: boolean
  /** A hang-up is not meant for this process. */
  readonly isUnderNohup: boolean
}

export interface Surroundings {
  readonly self: Pick<ProcessReading, 'pid' | 'parentPid'>
  /** Reads a process; undefined if it cannot be seen. */
  readonly read: (pid: number) => ProcessReading | undefined
  /** What npm sets for its scripts stands in the environment. */
  readonly isUnderNpm: boolean
  /** The parent is the launcher (bin/carpool.js). */
  readonly hasLauncher: boolean
  /** Whether the command was started by nohup. @param topPid its topmost process @param aboveTopPid the parent of that */
  readonly isUnderNohup: (topPid: number, aboveTopPid: number) => boolean
}

/** The kernel's name for npm, which sets it to `npm start`, `npm exec` and the like; the kernel keeps 15 bytes of it. */
const NPM_NAME = /^npm(?: |$)/

/**
 * Finds the processes that this one must not outlive: those that its command consists of (launcher, shell, npm), and those that
 * started the command: its parent, and if npm started that as well, all up to the parent of that npm. The latter are left out
 * for a command that is meant to outlive them: under nohup, as leader of a session (setsid), or because there are none but the
 * system's first process (a service).
 */
export function findStarters({ self, read, isUnderNpm, hasLauncher, isUnderNohup }: Surroundings): Starters {
  const own = read(self.pid)
  // Another parent is that of another process: in a namespace of its own, ids are not those of a /proc that is not.
  if (own?.parentPid !== self.parentPid) {
    const isNohup = isUnderNohup(self.pid, self.parentPid)
    const isAlone = !isUnderNpm && !hasLauncher && (isNohup || self.parentPid <= 1)
    const watched = isAlone ? [] : [{ pid: self.parentPid }]
    return { watched, isOrphan: false, isNextToNpm: isUnderNpm, isUnderNohup: isNohup }
  }
  const job = jobAbove(own, read)
  const isNpm = ({ name }: ProcessReading): boolean => isUnderNpm && NPM_NAME.test(name)
  const command = job.slice(0, Math.max(job.findIndex(isNpm) + 1, hasLauncher ? 1 : 0))
  const above = job.slice(command.length, job.findLastIndex(isNpm) + 1)
  const top = command.at(-1) ?? own
  const isNohup = isUnderNohup(top.pid, top.parentPid)
  const isOutliving = isNohup || isAlone(top, read)
  const highest = job.at(-1) ?? own
  const isWithoutCommand = (isUnderNpm && !job.some(isNpm)) || (hasLauncher && job.length === 0)
  return {
    watched: [...command, ...(isOutliving ? [] : [...above, ...parentOf(above.at(-1) ?? top, read)])].map(starterOf),
    isOrphan: !isNohup && isWithoutCommand && highest.pid !== highest.sessionId && isAlone(highest, read),
    isNextToNpm: job.slice(hasLauncher ? 1 : 0, hasLauncher ? 2 : 1).some(isNpm),
    isUnderNohup: isNohup,
  }
}

/**
 * The ancestors in the same process group: npm, its shell and what that runs are one job, and the shell that one types in is
 * not in it.
 */
function jobAbove(own: ProcessReading, read: Surroundings['read']): ProcessReading[] {
  const job: ProcessReading[] = []
  let above = read(own.parentPid)
  while (above?.groupId === own.groupId && above.sessionId === own.sessionId) {
    job.push(above)
    above = read(above.parentPid)
  }
  return job
}

/**
 * Whether a process has nobody above it in its session: it leads the session, or its parent is gone and the system's first
 * process took it.
 */
function isAlone({ pid, parentPid, sessionId }: ProcessReading, read: Surroundings['read']): boolean {
  if (pid === sessionId || parentPid <= 1) return true
  const parent = read(parentPid)
  return parent !== undefined && parent.sessionId !== sessionId
}

/** One that cannot be seen, as of another user, can be watched all the same. */
function parentOf(child: ProcessReading, read: Surroundings['read']): Starter[] {
  return isAlone(child, read) ? [] : [read(child.parentPid) ?? { pid: child.parentPid }]
}

function starterOf({ pid, name }: Starter): Starter {
  return { pid, ...(name !== undefined && { name }) }
}
