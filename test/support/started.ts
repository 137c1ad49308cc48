/** Servers that are started as people start them: by npm, npx, a script or a terminal, with all that stands above them. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { once } from 'node:events'
import type { StatusInfo } from '@carpool/core'
import type { ProcessReading as Process, ServerAddress } from '@carpool/server/discovery'
import type { Test } from 'tap'
import { PACKED, ROOT } from './command.ts'
import { commandOf, isAlive, readLine, readTree } from './process-tree.ts'
import { temporaryFolder } from './server.ts'

/** Far more than it takes, for a machine that has much else to do. */
const DEADLINE_MS = 60_000
/** A look may go through all processes of the machine, at the cost of the tests beside. */
const LOOK_INTERVAL_MS = 50
/** In the checkout, and packed. */
const HOST_PROGRAM = /host\/(?:src\/process\.ts|process\.js)/

/** The path of a user: what npm and tap put before it for their own scripts is not there. */
export const USERS_PATH = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

export function isInPath(program: string): boolean {
  return USERS_PATH.split(delimiter).some((folder) => existsSync(join(folder, program)))
}

/** Whether Carpool's launcher stands in front of it, because the user's Node.js is too old. */
export function usersNodeIsOld(): boolean {
  const node = USERS_PATH.split(delimiter)
    .map((folder) => join(folder, 'node'))
    .find((file) => existsSync(file))
  return node !== undefined && Number.parseInt(execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(1), 10) < 26
}

/** Asks until there is an answer. @throws Error that says what was waited for, and what `detail` says of it */
export async function untilThere<T>(
  what: string,
  ask: () => T | undefined | Promise<T | undefined>,
  detail = () => '',
): Promise<T> {
  const deadlineMs = performance.now() + DEADLINE_MS
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (performance.now() > deadlineMs) throw new Error(`After ${DEADLINE_MS} ms there is still not: ${what}. ${detail()}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS))
  }
}

/** Starts take a fifth less CPU time if they find the sources compiled. */
const COMPILE_CACHE = process.env['NODE_COMPILE_CACHE'] ?? join(ROOT, 'node_modules/.carpool-compiled')

/** What a server that is started in this environment keeps its things in. */
export function environmentIn(folder: string): Record<string, string> {
  return {
    HOME: folder,
    PATH: USERS_PATH,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    npm_config_update_notifier: 'false',
    CARPOOL_PORT: '0',
    CARPOOL_ADMIN_PORT: '0',
    CARPOOL_DATA: join(folder, 'data'),
    CARPOOL_STATE_DIR: join(folder, 'state'),
    CARPOOL_STANDBY_HOSTS: '0',
    CARPOOL_LOG_LEVEL: 'warn',
  }
}

/** A folder with Carpool installed, and with no Node.js: there the launcher stands in front if the machine's own is too old. */
export function projectIn(folder: string): string {
  const project = join(folder, 'project')
  mkdirSync(join(project, 'node_modules', '.bin'), { recursive: true })
  writeFileSync(join(project, 'package.json'), '{"name":"project","private":true}')
  symlinkSync(join(PACKED, 'bin/carpool.js'), join(project, 'node_modules', '.bin', 'carpool'))
  return project
}

/** Why the tests of this kind cannot run here, if they cannot: processes are found in `/proc`. */
export const noProc = !existsSync('/proc/self/stat') && 'there is no /proc, where processes above the parent are found'

/** A way of starting a server. */
export interface Way {
  readonly command: readonly string[]
  /** In a project with Carpool installed, rather than in the checkout. Default: false. */
  readonly isInProject?: boolean
  /** Variables beside those of {@link environmentIn}. */
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a server for the time of a test, with a folder of its own. */
export async function startBy(
  t: Test,
  { command, isInProject = false, env = {} }: Way,
): Promise<{ started: Started; server: Serving }> {
  const folder = temporaryFolder(t)
  const options = { env: { ...environmentIn(folder), ...env }, ...(isInProject && { cwd: projectIn(folder) }) }
  const started = new Started(t, command, options)
  return { started, server: await started.serverIn(folder) }
}

/** A command that was started, with everything that it started. */
export class Started {
  readonly root: ChildProcess
  /** What it printed so far, on stdout and stderr. */
  output = ''
  readonly #seen = new Map<number, Process>()

  /**
   * Starts a command for the time of a test in an environment of its own (`env -i`: tap adds hooks for Node.js to the one that
   * it gives).
   */
  constructor(t: Test, command: readonly string[], { cwd = ROOT, env }: { cwd?: string; env: Record<string, string> }) {
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    this.root = spawn('env', ['-i', ...variables, ...command], { cwd, stdio: ['pipe', 'pipe', 'pipe'] })
    for (const stream of [this.root.stdout, this.root.stderr])
      stream?.setEncoding('utf8').on('data', (text) => (this.output += text))
    this.root.stdin?.on('error', () => {})
    t.teardown(() => {
      this.look()
      for (const { pid } of this.alive) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // It has ended since.
        }
      }
    })
  }

  get pid(): number {
    return this.root.pid ?? 0
  }

  /** Takes note of all that belongs to it now; later its own end parts it from what it started. */
  look(): readonly Process[] {
    const tree = readTree(this.pid)
    for (const one of tree) this.#seen.set(one.pid, one)
    return tree
  }

  /** What the command of one of several servers consists of, and what it started. */
  below({ line, roles }: Serving): readonly Process[] {
    this.look()
    const npm = roles.get('npm') ?? line[0]
    return npm === undefined ? [] : readTree(npm.pid)
  }

  /** What is left of all that was noted. */
  get alive(): readonly Process[] {
    return [...this.#seen.values()].filter(isAlive)
  }

  /** Waits until none is left of those that were noted. */
  async untilGone(kept: readonly Process[] = []): Promise<void> {
    const left = (): readonly Process[] => this.alive.filter(({ pid }) => !kept.some((one) => one.pid === pid))
    const listed = (): string =>
      left()
        .map(({ pid, state }) => `${pid} ${state} ${commandOf(pid)}`)
        .join('\n') + this.output
    await untilThere('the end of all processes', () => (left().length === 0 ? true : undefined), listed)
  }

  /** Waits for the server that was started with a folder's environment, until it and a host are ready. */
  async serverIn(folder: string): Promise<Serving> {
    const address = await untilThere(
      'a server',
      () => announcedIn(folder),
      () => this.output,
    )
    await untilThere('a ready server', async () => {
      const response = await fetch(`${address.adminUrl}/readyz`)
      return response.ok ? true : undefined
    })
    const tree = this.look()
    if (!tree.some(({ pid }) => HOST_PROGRAM.test(commandOf(pid)))) throw new Error('There is no host below the command.')
    return new Serving(address, readLine(address.pid, this.pid))
  }
}

export type Role = 'npm' | 'shell' | 'launcher' | 'server'

/** A running server, and what stands above it. */
export class Serving {
  readonly address: ServerAddress
  /** From the server up to the command that was started. */
  readonly line: readonly Process[]

  constructor(address: ServerAddress, line: readonly Process[]) {
    this.address = address
    this.line = line
  }

  /** Those of the processes above the server that the system has put there: a shell may have made way for what it runs. */
  get roles(): ReadonlyMap<Role, Process> {
    const [server, ...above] = this.line
    const roles = new Map<Role, Process>(server === undefined ? [] : [['server', server]])
    for (const one of above) {
      const role = one.name.startsWith('npm') ? 'npm' : /^(?:da|ba)?sh$/.test(one.name) ? 'shell' : 'launcher'
      if (!roles.has(role)) roles.set(role, one)
    }
    return roles
  }

  /** Sends a signal to one of {@link roles}. */
  signal(role: Role, signal: NodeJS.Signals): void {
    const target = this.roles.get(role)
    if (target === undefined) throw new Error(`There is no ${role} in ${this.line.map(({ name }) => name).join(' < ')}.`)
    process.kill(target.pid, signal)
  }

  /** Deploys a function that answers after a while. */
  async deploySlow(name: string, delayMs: number): Promise<void> {
    const code = `(() => ({ default: { fetch: () => new Promise((resolve) => setTimeout(() => resolve(new Response('done')), ${delayMs})) } }))`
    const { adminUrl, token } = this.address
    const response = await fetch(`${adminUrl}/v1/functions/${name}/revisions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ code, sourceMap: JSON.stringify({ version: 3, sources: [], names: [], mappings: '' }) }),
    })
    if (!response.ok) throw new Error(await response.text())
  }

  /** Calls a function, and waits until the call is under way. `answer` resolves with its text, or `cut` if there is none. */
  async startCall(name: string): Promise<{ readonly answer: Promise<string> }> {
    const { url, adminUrl, token } = this.address
    const answer = fetch(`${url}/${name}/`).then(
      (response) => response.text(),
      () => 'cut',
    )
    await untilThere('a call under way', async () => {
      const response = await fetch(`${adminUrl}/v1/status`, { headers: { authorization: `Bearer ${token}` } })
      return ((await response.json()) as StatusInfo).inFlight === 1 ? true : undefined
    })
    return { answer }
  }

  /** Whether commands of its user would find it; it takes that back when it ends in order. */
  isAnnounced(): boolean {
    return announcedIn(join(this.address.dataDir, '..')) !== undefined
  }

  /** @throws Error unless another server could have the ports and the data */
  async assertFree(): Promise<void> {
    for (const url of [this.address.url, this.address.adminUrl]) {
      const listener = createServer().listen(Number(new URL(url).port), '127.0.0.1')
      await once(listener, 'listening')
      listener.close()
      await once(listener, 'close')
    }
    const database = new DatabaseSync(join(this.address.dataDir, 'registry.sqlite'))
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK')
    database.close()
  }
}

function announcedIn(folder: string): ServerAddress | undefined {
  try {
    const state = join(folder, 'state')
    const file = readdirSync(state).find((name) => name.endsWith('.json'))
    return file === undefined ? undefined : (JSON.parse(readFileSync(join(state, file), 'utf8')) as ServerAddress)
  } catch {
    return undefined
  }
}
