import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestServer } from '../../support/server.ts'

/** The process of a server, as it announces itself to the command. */
export function pidOf({ stateDir }: TestServer): number {
  const [file] = readdirSync(stateDir).filter((name) => /^server-\d+-/.test(name))
  if (file === undefined) throw new Error('The server is not announced.')
  return (JSON.parse(readFileSync(join(stateDir, file), 'utf8')) as { pid: number }).pid
}

/** What the system sets limits on: the size of files, and the number of open descriptors. */
export type Limited = 'fsize' | 'nofile'

/** Sets a limit of a running process, which keeps the leave to raise it again. */
export function limitProcess(pid: number, what: Limited, limit: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--${what}=${limit}:`])
}

/** The limit that is in force, to be set again later. */
export function limitOf(pid: number, what: Limited): number | 'unlimited' {
  const key = { fsize: 'Max file size', nofile: 'Max open files' }[what]
  const [, soft = ''] = new RegExp(`^${key} +(\\S+)`, 'm').exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  return soft === 'unlimited' ? soft : Number(soft)
}

/** Why limits cannot be set here; undefined if they can. */
export function noLimits(): string | undefined {
  try {
    execFileSync('prlimit', ['--version'])
    return undefined
  } catch {
    return 'There is no prlimit here to make the disk full or descriptors scarce with.'
  }
}
