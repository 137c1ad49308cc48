import { untilStopped } from '@carpool/cli'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { createInterface } from 'node:readline'
import { exitCodeOf } from './end-with.ts'

export interface ChildServerOptions<Ready> {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** Where it says that it is ready: 1 is stdout, 3 an additional pipe. */
  readonly readyFd?: 1 | 3
  /** Reads a line; what it returns, unless undefined, ends the wait. */
  readonly parseReady: (line: string) => Ready | undefined
}

/** A server in a process of its own. */
export interface ChildServer<Ready> extends AsyncDisposable {
  readonly pid: number
  readonly ready: Ready
  /** What it wrote to stderr last. */
  readonly stderr: string
  /** Asks it to stop, and kills it if it has not after a while. */
  stop(): Promise<void>
}

const STOP_TIMEOUT_MS = 30_000
const STDERR_CHARACTERS = 4000

const running = new Set<ChildProcess>()
// Whatever ends a bench, its servers go with it.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
void untilStopped((line) => console.error(line)).then((signal) => process.exit(exitCodeOf(signal)))

/** Starts a server and waits until it says that it is ready. @throws Error with the end of its stderr if it ends instead */
export async function startChildServer<Ready>(options: ChildServerOptions<Ready>): Promise<ChildServer<Ready>> {
  const { command, args, env = process.env, readyFd = 1, parseReady } = options
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
  running.add(child)
  const guard = startGuard(child)
  const ended = once(child, 'close').then(() => {
    running.delete(child)
    guard?.kill('SIGKILL')
  })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_CHARACTERS)
  })
  const ready = await firstLine(child.stdio[readyFd] as Readable, parseReady)
  if (ready === undefined) {
    await ended
    const how = child.exitCode === null ? (child.signalCode ?? 'could not be started') : `exit code ${child.exitCode}`
    throw new Error(`${[command, ...args].join(' ')} ended before it was ready (${how}).\n${stderr}`)
  }
  const stop = async (): Promise<void> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    child.kill('SIGTERM')
    await ended
    clearTimeout(timer)
  }
  return {
    pid: child.pid ?? 0,
    ready,
    get stderr() {
      return stderr
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/**
 * Kills a server when this process is killed, and can do nothing itself: then the guard's stdin ends. It stands beside the
 * server, not above it.
 */
function startGuard({ pid }: ChildProcess): ChildProcess | undefined {
  if (pid === undefined) return undefined
  const guard = spawn('sh', ['-c', 'read -r _; kill -KILL "$1"', 'sh', String(pid)], { stdio: ['pipe', 'ignore', 'ignore'] })
  guard.unref()
  return guard
}

async function firstLine<T>(stream: Readable, parse: (line: string) => T | undefined): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>()
  createInterface({ input: stream })
    .on('line', (line) => {
      const value = parse(line)
      if (value !== undefined) resolve(value)
    })
    .on('close', () => resolve(undefined))
  return promise
}

/** Reads a line of JSON; undefined if it is none. */
export function parseJsonLine<T extends object>(line: string): Partial<T> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
