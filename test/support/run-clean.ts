import { spawn } from 'node:child_process'
import { ROOT, untilEnd, type Finished } from './command.ts'

/** How a program is run that must not know of the test runner. */
export interface CleanOptions {
  /** User to run it as, for a root. */
  readonly uid?: number
  /** A command in front of it, such as one that takes something away from it. */
  readonly before?: readonly string[]
  readonly cwd?: string
}

/**
 * Runs a program with Node.js in an empty environment: tap adds hooks to the one of every Node.js process that a test starts
 * itself.
 */
export async function runClean(
  nodeArguments: readonly string[],
  { uid, before = [], cwd = ROOT }: CleanOptions = {},
): Promise<Finished> {
  const [command = 'env', ...args] = [
    ...before,
    'env',
    '-i',
    `PATH=${process.env['PATH'] ?? ''}`,
    process.execPath,
    ...nodeArguments,
  ]
  const user = uid === undefined ? {} : { uid, gid: uid }
  return await untilEnd(spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], ...user }))
}
