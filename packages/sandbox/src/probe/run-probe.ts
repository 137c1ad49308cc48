import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import type { Cage, CagedProcess } from '../cage.ts'
import { PROBE_MAIN } from '../probe-files.ts'
import { killGroup } from '../process-tree.ts'
import { said } from '../said.ts'
import { CANARY_SIGNAL } from './attempts.ts'
import type { ProbeAnswer, ProbeOrder } from './messages.ts'

/** How long a probe may take, in ms. Programs that it starts may take a while on a machine that is busy. */
const PROBE_MS = 20_000
/** What a program that could not start has to say is short. */
const MAX_COMPLAINT = 4_096

/** What a probe found out, or why it could not run at all. */
export type ProbeResult =
  | { readonly answer: ProbeAnswer; readonly groups: readonly string[]; readonly groupFolders: CagedProcess['groups'] }
  | { readonly complaint: string; readonly isLate?: boolean }

export interface ProbeProgram {
  readonly nodePath: string
  /** Before the program; what a host gets, as far as it is to be tried. */
  readonly nodeArguments: readonly string[]
}

/**
 * Starts a program in a cage exactly as a host is started, and has it try what a host should not be able to do.
 * @param limitMs how long it may take; then it and all that it has started is ended
 */
export async function runProbe(
  cage: Cage,
  { nodePath, nodeArguments }: ProbeProgram,
  order: ProbeOrder,
  limitMs = PROBE_MS,
): Promise<ProbeResult> {
  let caged: CagedProcess
  try {
    caged = cage.spawn({ nodePath, nodeArguments: [...nodeArguments, PROBE_MAIN] })
  } catch (cause) {
    return { complaint: codeOf(cause) }
  }
  const { child } = caged
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  let wasSignalled = false
  const signalled = (): void => void (wasSignalled = true)
  process.on(CANARY_SIGNAL, signalled)
  let isLate = false
  let limit: NodeJS.Timeout | undefined
  const late = new Promise<ProbeResult>((resolve) => {
    limit = setTimeout(() => {
      isLate = true
      resolve({ complaint: `It did not answer within ${limitMs / 1000} s.`, isLate })
    }, limitMs)
  })
  try {
    const result = await Promise.race([answerOf(caged, order), complaintOf(caged), late])
    // A signal that was sent before the answer is here with it.
    await new Promise((resolve) => setTimeout(resolve, 0))
    return wasSignalled ? result : withoutSignal(result)
  } finally {
    process.off(CANARY_SIGNAL, signalled)
    clearTimeout(limit)
    caged.kill()
    // What hangs in front of the probe may have started others, and need not end at once.
    if (isLate) killGroup(child)
    else await (child.pid === undefined ? undefined : ended)
  }
}

async function answerOf(caged: CagedProcess, order: ProbeOrder): Promise<ProbeResult> {
  const socket = caged.child.stdio[3] as Duplex | null | undefined
  if (!socket) return new Promise(() => {})
  const lines = createInterface({ input: socket })
  // It breaks when the process ends; that is told otherwise.
  socket.on('error', () => {})
  lines.on('error', () => {})
  socket.write(`${JSON.stringify(order)}\n`)
  const line = await new Promise<string>((resolve) => lines.once('line', resolve))
  const groups = contentOf(`/proc/${caged.pid()}/cgroup`).split('\n')
  lines.close()
  return { answer: JSON.parse(line) as ProbeAnswer, groups, groupFolders: caged.groups }
}

/** The id of this process may be that of another where the probe runs: then that got the signal. */
function withoutSignal(result: ProbeResult): ProbeResult {
  if ('complaint' in result || result.answer.results['signal the server'] !== 'done') return result
  const results = { ...result.answer.results, 'signal the server': 'ESRCH' }
  return { ...result, answer: { ...result.answer, results } }
}

/** Resolves when the process ends without an answer. */
async function complaintOf(caged: CagedProcess): Promise<ProbeResult> {
  const { child } = caged
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    if (text.length < MAX_COMPLAINT) text += chunk
  })
  return new Promise((resolve) => {
    child.once('error', (cause) => resolve({ complaint: codeOf(cause) }))
    child.once('close', (code, signal) => {
      const end = caged.endOf(code, signal)
      resolve({ complaint: said(text) || `It ended with ${end.signal ?? `exit code ${end.exitCode}`}.` })
    })
  })
}

function codeOf(cause: unknown): string {
  return `It could not be started: ${(cause as NodeJS.ErrnoException).code ?? 'it failed'}.`
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
