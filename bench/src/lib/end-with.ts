import { untilStopped } from '@carpool/cli'
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'

let children: Set<ChildProcess> | undefined

/**
 * Ends a child process, which has things of its own to end, when this process is to end: by a signal, or because what started
 * it has gone.
 * @returns to be called when the child has ended
 */
export function endWith(child: ChildProcess): () => void {
  children ??= watched()
  children.add(child)
  return () => children?.delete(child)
}

/** As a shell has it of a process that a signal ended; 1 if it was none. */
export function exitCodeOf(signal: NodeJS.Signals | undefined): number {
  return signal === undefined ? 1 : 128 + constants.signals[signal]
}

function watched(): Set<ChildProcess> {
  const all = new Set<ChildProcess>()
  void untilStopped((line) => console.error(line)).then(async (signal) => {
    const ends = [...all].map((child) => new Promise((resolve) => child.once('close', resolve)))
    for (const child of all) child.kill('SIGTERM')
    await Promise.all(ends)
    process.exit(exitCodeOf(signal))
  })
  return all
}
