import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { untilStopped } from '@carpool/cli'
import { readProcesses } from '../process-table.ts'
import { selectTree } from '../process-tree.ts'

/** How a database is started from what Debian's packages bring. */
export interface DatabaseKind {
  readonly name: string
  /** Programs that it needs, the server first. */
  readonly programs: readonly string[]
  /** Makes what the server needs in its folder, once. */
  prepare(folder: string, run: (program: string, args: readonly string[]) => void): void
  /** Arguments of the server. */
  args(folder: string, port: number): readonly string[]
  /** Whether it answers. */
  isReady(port: number, folder: string): Promise<boolean>
}

/** A database server on a loopback port of its own, with its files in a folder of its own. */
export interface Database extends AsyncDisposable {
  readonly port: number
  readonly folder: string
  readonly pid: number
  /** Sends a signal to the server, and to the processes that it has for its connections. */
  signal(signal: NodeJS.Signals): void
  /** Ends it at once, as a machine that fails. */
  kill(): Promise<void>
  /** Starts it again, on the same port and with the same files. */
  restart(): Promise<void>
}

/** Servers refuse to run as root: they are given to who owns nothing. */
const NOBODY = 65_534
const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
/** How long one may take to answer, in ms: the first start of some writes 100 MB. */
const START_MS = 60_000
const LOOK_MS = 20

const running = new Set<ChildProcess>()
const endAll = (): void => {
  for (const child of running) signalTree(child, 'SIGKILL')
}
process.once('exit', endAll)
void untilStopped(() => {}).then((signal) => process.exit(signal === undefined ? 1 : 130))

/** Where a program is; undefined if it is not in the path. */
function programPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** Why a database cannot be started here, with how it is got; false if it can. */
export function missing({ name, programs }: DatabaseKind): string | false {
  const absent = programs.filter((program) => programPath(program) === undefined)
  return absent.length > 0 && `${name} is not there (${absent.join(', ')}); .ci/databases gets it`
}

/** Starts a database. @throws Error with what it said if it does not answer in time */
export async function startDatabase(kind: DatabaseKind): Promise<Database> {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-db-'))
  if (asUser.uid !== undefined) chownSync(folder, asUser.uid, asUser.gid)
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  kind.prepare(folder, (program, args) => {
    const { status, stderr } = spawnSync(programPath(program)!, args, { cwd: folder, ...asUser, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${program} failed: ${stderr}`)
  })
  const port = await freePort()
  let child = await start(kind, folder, port)
  const kill = async (): Promise<void> => {
    if (!running.has(child)) return
    const ended = once(child, 'close')
    signalTree(child, 'SIGCONT')
    signalTree(child, 'SIGKILL')
    await ended
  }
  return {
    port,
    folder,
    get pid() {
      return child.pid!
    },
    signal: (signal) => signalTree(child, signal),
    kill,
    restart: async () => {
      await kill()
      child = await start(kind, folder, port)
    },
    [Symbol.asyncDispose]: async () => {
      await kill()
      process.off('exit', remove)
      remove()
    },
  }
}

async function start(kind: DatabaseKind, folder: string, port: number): Promise<ChildProcess> {
  const child = spawn(programPath(kind.programs[0]!)!, kind.args(folder, port), {
    cwd: folder,
    ...asUser,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: folder, LC_ALL: 'C.UTF-8' },
  })
  running.add(child)
  let said = ''
  const note = (text: Buffer): void => void (said = (said + text.toString()).slice(-4000))
  child.stdout.on('data', note)
  child.stderr.on('data', note)
  child.once('close', () => running.delete(child))
  const endMs = performance.now() + START_MS
  while (!(await kind.isReady(port, folder))) {
    if (!running.has(child) || performance.now() > endMs) throw new Error(`${kind.name} does not answer: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  return child
}

/** To all at once that it has started: PostgreSQL's processes for connections have groups of their own. */
function signalTree({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  for (const one of selectTree(readProcesses(), [pid!])) {
    try {
      process.kill(one.pid, signal)
    } catch {
      // It has ended.
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
