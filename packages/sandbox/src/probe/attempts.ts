import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type NetConnectOpts } from 'node:net'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { startedTicks } from '../process-tree.ts'

/** What there is outside of the cage to be reached. All of it was put there for that. */
export interface Canaries {
  /** A file that everyone may read, */
  readonly file: string
  /** in a folder where everyone may write. */
  readonly folder: string
  /** Of listeners on 127.0.0.1, */
  readonly tcpPort: number
  readonly udpPort: number
  /** and of UNIX sockets: one with a path, */
  readonly socketPath: string
  /** and one with a name in the abstract namespace, from the null character on. */
  readonly socketName: string
  /** The process that put them there, by its id where it runs; that may be another's where the probe runs, */
  readonly pid: number
  /** and so when it was started, in clock ticks since the machine was. */
  readonly startedTicks: string
}

/** `done`, or the code of the error. */
export type AttemptResult = string

/**
 * What code that is loose in a host would try. Each tells whether it could do it; none harms anything.
 * @throws Error with a code if it cannot be done
 */
export const ATTEMPTS = {
  'read a file': ({ file }) => void readFileSync(file),
  'list a folder': ({ folder }) => void readdirSync(folder),
  'write a file': ({ folder }) => writeFileSync(join(folder, `written-${process.pid}`), 'x'),
  'read the environment of the server': (canaries) => void readFileSync(`${folderOf(canaries)}/environ`),
  'read the memory of the server': (canaries) => closeSync(openSync(`${folderOf(canaries)}/mem`, 'r')),
  'see the processes of others': (canaries) => void folderOf(canaries),
  'signal the server': ({ pid }) => void process.kill(pid, CANARY_SIGNAL),
  'connect to a TCP port': ({ tcpPort }) => connected({ host: '127.0.0.1', port: tcpPort }),
  'send a UDP packet': ({ udpPort }) => sent(udpPort),
  'connect to a UNIX socket': ({ socketPath }) => connected({ path: socketPath }),
  'connect to an abstract UNIX socket': ({ socketName }) => connected({ path: socketName }),
  'run a program': () => ran(process.execPath, ['--version']),
  'run a shell': () => ran('/bin/sh', ['-c', ':']),
  'start a thread': started,
} as const satisfies Record<string, (canaries: Canaries) => void | Promise<void>>

export type AttemptName = keyof typeof ATTEMPTS

/** Whoever gets it and does not wait for it ignores it. */
export const CANARY_SIGNAL = 'SIGURG'

function folderOf({ pid, startedTicks: expected }: Canaries): string {
  if (startedTicks(pid) !== expected) throw Object.assign(new Error('That is another process.'), { code: 'ENOENT' })
  return `/proc/${pid}`
}

/** How long one may take, in ms: a packet that is lost is not refused. */
const ATTEMPT_MS = 5_000

export async function attempt(name: AttemptName, canaries: Canaries): Promise<AttemptResult> {
  let limit: NodeJS.Timeout | undefined
  const late = new Promise<AttemptResult>((resolve) => (limit = setTimeout(() => resolve('ETIMEDOUT'), ATTEMPT_MS)))
  try {
    return await Promise.race([(async () => ATTEMPTS[name](canaries))().then(() => 'done'), late])
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code ?? 'failed'
  } finally {
    clearTimeout(limit)
  }
}

async function connected(options: NetConnectOpts): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(options, () => resolve(void socket.destroy()))
    socket.once('error', reject)
  })
}

async function sent(port: number): Promise<void> {
  const socket = createSocket('udp4')
  return new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    // Who listens sends it back.
    socket.once('message', () => resolve())
    // A connected one is told if nobody listens.
    socket.connect(port, '127.0.0.1', () => socket.send('x'))
  }).finally(() => socket.close())
}

function ran(command: string, args: readonly string[]): void {
  const { error, status } = spawnSync(command, args)
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`exit code ${status}`)
}

async function started(): Promise<void> {
  const worker = new Worker('', { eval: true })
  return new Promise((resolve, reject) => {
    worker.once('online', resolve)
    worker.once('error', reject)
  })
}
