import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { killGroup } from './process-tree.ts'
import { said } from './said.ts'

/** Why a tool that is there is not used, and what helps, in a sentence each. */
export interface ToolProblem {
  readonly why: string
  /** Names no file, for whoever asks for the state of the server may see it. */
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

/** The first version with all that is asked of it here: `--ro-bind-try` is the newest of that. */
const OLDEST_VERSION = [0, 3, 1]
/** How long it may take to say its version, in ms. It takes some 2; a machine may be busy. */
const LIMIT_MS = 5_000
/** A version is short. */
const MAX_CHARACTERS = 4_096

const ANEW = 'Install bubblewrap anew: apt install --reinstall bubblewrap.'

/**
 * What is wrong with a bubblewrap that is there; undefined if it is sound. Whether it may do its work here is another question. Takes
 * 5 s at most.
 * @param uid user and group to run it as; undefined: those of this process
 */
export async function bubblewrapProblem(path: string, uid?: number): Promise<ToolProblem | undefined> {
  const answer = await askVersion(path, uid)
  // In a user namespace there may be no such user: then hosts are not run as that one either.
  const lacksUser = uid !== undefined && (answer.error === 'EINVAL' || answer.error === 'EPERM')
  return lacksUser ? await bubblewrapProblem(path) : judgeVersion(path, answer, uid)
}

/** Pure. */
export function judgeVersion(path: string, answer: VersionAnswer, uid?: number): ToolProblem | undefined {
  const { stdout, stderr, error, end } = answer
  const problem = (why: string, remedy = ANEW): ToolProblem => ({ why: `${path} is there, but ${why}.`, remedy })
  if (error === 'EACCES') {
    const who = uid === undefined ? 'this user' : `user ${uid}`
    return problem(`${who} may not run it (Permission denied)`, 'Let everyone run bwrap, or install bubblewrap anew.')
  }
  if (error !== undefined) return problem(`it does not start (${error})`)
  if (end === undefined) return problem(`it hangs: "bwrap --version" did not end within ${LIMIT_MS / 1000} s`)
  const words = said(stdout + stderr)
  if (end.exitCode !== 0) {
    const how = end.signal ?? `exit code ${end.exitCode}`
    return problem(`it is broken: "bwrap --version" ended with ${how}${words === '' ? '' : `, and said: ${words}`}`)
  }
  const version = /^bubblewrap (\d+(?:\.\d+)+)/.exec(stdout)?.[1]
  if (version === undefined) return problem(`it is no bubblewrap: to --version it says ${words === '' ? 'nothing' : words}`)
  if (isOlder(version)) {
    const needed = OLDEST_VERSION.join('.')
    return problem(`it is too old: it is ${version}, and ${needed} is needed`, `Install bubblewrap ${needed} or newer.`)
  }
  return undefined
}

function isOlder(version: string): boolean {
  const numbers = version.split('.').map(Number)
  const different = OLDEST_VERSION.findIndex((number, index) => number !== (numbers[index] ?? 0))
  return different !== -1 && (numbers[different] ?? 0) < OLDEST_VERSION[different]!
}

async function askVersion(path: string, uid: number | undefined): Promise<VersionAnswer> {
  const texts = { stdout: '', stderr: '' }
  let child: ChildProcessByStdio<null, Readable, Readable>
  try {
    child = spawn(path, ['--version'], {
      cwd: '/',
      env: {},
      // In a group of its own, so that whatever it starts can be ended with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid !== undefined && { uid, gid: uid }),
    })
  } catch (cause) {
    return { ...texts, error: codeOf(cause) }
  }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      if (texts[name].length < MAX_CHARACTERS) texts[name] += chunk
    })
  }
  let limit: NodeJS.Timeout | undefined
  try {
    return await new Promise<VersionAnswer>((resolve) => {
      limit = setTimeout(() => {
        killGroup(child)
        resolve(texts)
      }, LIMIT_MS)
      child.once('error', (cause) => resolve({ ...texts, error: codeOf(cause) }))
      child.once('close', (exitCode, signal) => resolve({ ...texts, end: { exitCode, signal } }))
    })
  } finally {
    clearTimeout(limit)
  }
}

function codeOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException
  return code ?? message
}
