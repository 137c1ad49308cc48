import { fstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'

const ACCESS_MODES = 0o3
const WRITE_ONLY = 0o1

/**
 * Whether this process's command was started by nohup. That a hang-up is to be ignored cannot be asked for: Node.js takes all signals back to their
 * defaults when it starts. What is left are three traces, of which one may be missing: a shell names the program that it starts in `_`; nohup
 * puts /dev/null in place of a terminal as stdin, for writing only; and in place of one as stdout, a file of its own name.
 * @param topPid topmost process of the command, whose environment is what nohup left: a shell below it may have set `_` anew
 * @param aboveTopPid its parent. Who has the same in its environment was started by nohup itself, and passed it on.
 */
export function isUnderNohup(topPid: number, aboveTopPid: number): boolean {
  const isNamed = [process.env['_'], variableOf(topPid, '_')].some(isNohup) && !isNohup(variableOf(aboveTopPid, '_'))
  return isNamed || isStdinNull() || isStdoutNohup()
}

function isNohup(path: string | undefined): boolean {
  return path !== undefined && basename(path) === 'nohup'
}

function variableOf(pid: number, name: string): string | undefined {
  const variables = attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')) ?? []
  return variables.find((variable) => variable.startsWith(`${name}=`))?.slice(name.length + 1)
}

function isStdinNull(): boolean {
  const flags = attempt(() => /^flags:\s*([0-7]+)/m.exec(readFileSync('/proc/self/fdinfo/0', 'utf8'))?.[1])
  if (flags === undefined || (Number.parseInt(flags, 8) & ACCESS_MODES) !== WRITE_ONLY) return false
  return attempt(() => fstatSync(0).rdev === statSync('/dev/null').rdev) ?? false
}

function isStdoutNohup(): boolean {
  return basename(attempt(() => readlinkSync('/proc/self/fd/1')) ?? '') === 'nohup.out'
}

/** What there is no `/proc` for, or not for us, is undefined. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
