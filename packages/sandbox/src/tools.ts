import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { killGroup, oneLine } from './processes.ts'

/** Paths of the programs that put layers around another; absent: not installed. */
export interface Tools {
  readonly sh?: string
  readonly setpriv?: string
  readonly bubblewrap?: string
}

/** Where the system's own programs are. Not PATH: what stands there first would make the sandbox. */
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin']

/** A bubblewrap that may not be run is found too: that is not the same as none. */
export function findTools(folders: readonly string[] = FOLDERS): Tools {
  const pathsOf = (name: string): readonly string[] => folders.map((folder) => join(folder, name))
  const executable = (name: string): string | undefined => pathsOf(name).find(isExecutable)
  const [sh, setpriv] = [executable('sh'), executable('setpriv')]
  const bubblewrap = executable('bwrap') ?? pathsOf('bwrap').find((path) => existsSync(path))
  return {
    ...(sh !== undefined && { sh }),
    ...(setpriv !== undefined && { setpriv }),
    ...(bubblewrap !== undefined && { bubblewrap }),
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Why a tool that is there is not used, and what helps, in a sentence each. */
export interface ToolProblem {
  readonly why: string
  /** Names no file, for everyone who asks for the state of the server may see it. */
  readonly remedy: string
}

/** What `bwrap --version` came to. */
export interface VersionAnswer {
  readonly stdout: string
  readonly stderr: string
  /** Code of the system's error if it could not be started. */
  readonly error?: string
  /** Undefined if it did not end in time. */
  readonly end?: { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }
}

/** The first version with all that is used of it here: `--ro-bind-try` is the newest of that. */
const OLDEST_VERSION = '0.3.1'
/** How long it may take to print its version, in ms. It takes some 2; a machine may be busy. */
const VERSION_MS = 5_000
const MAX_CHARACTERS = 4_096

const REINSTALL = 'Install bubblewrap anew: apt install --reinstall bubblewrap.'

/**
 * What is wrong with a bubblewrap that is there; undefined if it is sound. Whether it may do its work here is another question.
 * Takes 5 s at most.
 * @param uid user and group to run it as; undefined: those of this process
 */
export async function bubblewrapProblem(path: string, uid?: number): Promise<ToolProblem | undefined> {
  const answer = await askVersion(path, uid)
  // In a user namespace there may be no such user: then hosts are not run as that one either.
  const lacksUser = uid !== undefined && (answer.error === 'EINVAL' || answer.error === 'EPERM')
  return lacksUser ? await bubblewrapProblem(path) : versionProblem(path, answer, uid)
}

/** Pure. */
export function versionProblem(path: string, answer: VersionAnswer, uid?: number): ToolProblem | undefined {
  const { stdout, stderr, error, end } = answer
  const problem = (why: string, remedy = REINSTALL): ToolProblem => ({ why: `${path} is there, but ${why}.`, remedy })
  if (error === 'EACCES') {
    const who = uid === undefined ? 'this user' : `user ${uid}`
    return problem(`${who} may not run it (Permission denied)`, 'Let everyone run bwrap, or install bubblewrap anew.')
  }
  if (error !== undefined) return problem(`it does not start (${error})`)
  if (end === undefined) return problem(`it hangs: "bwrap --version" did not end within ${VERSION_MS / 1000} s`)
  const output = oneLine(stdout + stderr)
  if (end.exitCode !== 0) {
    const how = end.signal ?? `exit code ${end.exitCode}`
    return problem(`it is broken: "bwrap --version" ended with ${how}${output === '' ? '' : `, and said: ${output}`}`)
  }
  const version = /^bubblewrap (\d+(?:\.\d+)+)/.exec(stdout)?.[1]
  if (version === undefined) return problem(`it is no bubblewrap: to --version it says ${output === '' ? 'nothing' : output}`)
  if (version.localeCompare(OLDEST_VERSION, 'en', { numeric: true }) >= 0) return undefined
  return problem(
    `it is too old: it is ${version}, and ${OLDEST_VERSION} is needed`,
    `Install bubblewrap ${OLDEST_VERSION} or newer.`,
  )
}

async function askVersion(path: string, uid: number | undefined): Promise<VersionAnswer> {
  const output = { stdout: '', stderr: '' }
  let child: ChildProcessByStdio<null, Readable, Readable>
  try {
    child = spawn(path, ['--version'], {
      cwd: '/',
      env: {},
      // In a group of its own, so that all that it starts can be ended with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid !== undefined && { uid, gid: uid }),
    })
  } catch (cause) {
    return { ...output, error: codeOf(cause) }
  }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      if (output[name].length < MAX_CHARACTERS) output[name] += chunk
    })
  }
  const answer = Promise.withResolvers<VersionAnswer>()
  const limit = setTimeout(() => {
    killGroup(child)
    answer.resolve(output)
  }, VERSION_MS)
  child.once('error', (cause) => answer.resolve({ ...output, error: codeOf(cause) }))
  child.once('close', (exitCode, signal) => answer.resolve({ ...output, end: { exitCode, signal } }))
  return await answer.promise.finally(() => clearTimeout(limit))
}

function codeOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException
  return code ?? message
}

const READ = 0o4
const ENTER = 0o1

/**
 * The first of the paths, or of the folders that lead there, that a user without groups may not read or enter; undefined if all
 * is well. Rights that access control lists give are not seen.
 */
export function unreadableBy(uid: number, paths: readonly string[]): string | undefined {
  for (const path of paths.map((one) => realpathSync(one))) {
    const folder = foldersTo(path).find((one) => !mayAccess(uid, one, ENTER))
    if (folder !== undefined) return folder
    if (!mayAccess(uid, path, statSync(path).isDirectory() ? READ | ENTER : READ)) return path
  }
  return undefined
}

/** From the root down. */
function foldersTo(path: string): readonly string[] {
  const parent = dirname(path)
  return parent === path ? [] : [...foldersTo(parent), parent]
}

function mayAccess(uid: number, path: string, needed: number): boolean {
  const { mode, uid: owner, gid } = statSync(path)
  const bits = owner === uid ? mode >> 6 : gid === uid ? mode >> 3 : mode
  return (bits & needed) === needed
}
