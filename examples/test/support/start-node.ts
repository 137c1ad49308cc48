import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'

export type NodeProcess = ChildProcessByStdio<null, Readable, Readable>

/**
 * Starts Node.js for the time of a test, with an environment of its own. `env -i` is there because tap adds its own hooks to the
 * environment of every Node.js process that a test starts, and host processes may not load them.
 */
export function startNode(t: Test, args: readonly string[], env: Record<string, string>): NodeProcess {
  const variables = Object.entries({ PATH: process.env['PATH'] ?? '', ...env }).map(([name, value]) => `${name}=${value}`)
  const child = spawn('env', ['-i', ...variables, process.execPath, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGKILL')
    // Until then it may write into a folder that goes with the test.
    await ended
  })
  return child
}

/** What the process prints until it has printed `end`. @throws Error if it ends before */
export async function outputUntil({ stdout, stderr }: NodeProcess, end: string): Promise<string> {
  stderr.pipe(process.stderr)
  let output = ''
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    output += String(chunk)
    if (output.includes(end)) return output
  }
  throw new Error(`The process ended before it printed ${JSON.stringify(end)}; it printed ${JSON.stringify(output)}.`)
}
