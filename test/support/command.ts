import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
const CARPOOL = join(ROOT, 'packages/cli/bin/carpool.js')

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Starts the `carpool` command as a user would, in an environment of its own. `env -i` is there because tap adds its own hooks to the
 * environment of every Node.js process that a test starts, and host processes may not load them.
 */
export function startCarpool(args: readonly string[], env: Record<string, string>, cwd: string = ROOT): ChildProcess {
  const variables = Object.entries({ PATH: process.env['PATH'] ?? '', ...env }).map(([name, value]) => `${name}=${value}`)
  return spawn('env', ['-i', ...variables, process.execPath, CARPOOL, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

export async function untilEnd(child: ChildProcess): Promise<Finished> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk) => (stdout += String(chunk)))
  child.stderr?.on('data', (chunk) => (stderr += String(chunk)))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}
