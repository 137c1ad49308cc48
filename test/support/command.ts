import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'

export const ROOT = join(import.meta.dirname, '../..')
/** The command as it is published: `npm run test:unit` packs it (pack.ts). */
export const PACKED = join(ROOT, 'node_modules/.carpool-packed')
export const CARPOOL = join(PACKED, 'bin/carpool.js')

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Starts the `carpool` command as a user would, in an environment of its own. `env -i` is there because tap adds its own hooks
 * to the environment of every Node.js process that a test starts, and host processes may not load them.
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

/** Runs the command in this process, which takes a third of the time; only for commands that end by themselves. */
export async function runCarpool(args: readonly string[], env: Record<string, string>): Promise<Finished> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const read = Promise.all([text(stdout), text(stderr)])
  const { run } = (await import(join(PACKED, 'dist/index.js'))) as typeof import('@carpool/cli')
  const code = await run(args, { stdin: Readable.from([]), stdout, stderr, env, cwd: () => ROOT })
  stdout.end()
  stderr.end()
  const [output, errors] = await read
  return { code, stdout: output, stderr: errors }
}
