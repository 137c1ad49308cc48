import { readFileSync, readlinkSync } from 'node:fs'
import { openThings } from '../inherited-descriptors.ts'
import { systemReport } from '../system-report.ts'

/** What a process knows of its own cage. What it cannot find out is absent. */
export interface OwnFacts {
  readonly uid: number
  readonly gid: number
  readonly groups: readonly number[]
  /** Names of the variables in its environment. */
  readonly environment: readonly string[]
  /** What its descriptors are open on. */
  readonly things: readonly string[]
  /** Its namespaces, as the kernel names them. */
  readonly namespaces: Readonly<Record<string, string>>
  /** Largest core dump, and largest file, in blocks; `unlimited` if there is no limit. */
  readonly limits: Readonly<Record<'core_file_size_blocks' | 'file_size_blocks' | 'open_files', number | 'unlimited'>>
  readonly hasNoNewPrivileges: boolean | undefined
  /** Permitted capabilities, as a bit set in hexadecimal. */
  readonly capabilities: string | undefined
}

const NAMESPACES = ['user', 'net', 'mnt', 'pid', 'ipc', 'uts']

export function ownFacts(): OwnFacts {
  const { userLimits = {} } = systemReport()
  const limit = (name: string): number | 'unlimited' => userLimits[name]?.soft ?? 'unlimited'
  const status = contentOf('/proc/self/status')
  const noNewPrivileges = /^NoNewPrivs:\s*(\d)/m.exec(status)?.[1]
  return {
    uid: process.getuid?.() ?? -1,
    gid: process.getgid?.() ?? -1,
    groups: process.getgroups?.() ?? [],
    environment: Object.keys(process.env),
    things: [...openThings()],
    namespaces: Object.fromEntries(NAMESPACES.map((name) => [name, namespaceOf(name)])),
    limits: {
      core_file_size_blocks: limit('core_file_size_blocks'),
      file_size_blocks: limit('file_size_blocks'),
      open_files: limit('open_files'),
    },
    hasNoNewPrivileges: noNewPrivileges === undefined ? undefined : noNewPrivileges === '1',
    capabilities: /^CapPrm:\s*([0-9a-f]+)/m.exec(status)?.[1],
  }
}

/** The kernel's name of a namespace of this process; two processes in one and the same have the same. Empty if it does not tell. */
function namespaceOf(name: string): string {
  try {
    return readlinkSync(`/proc/self/ns/${name}`)
  } catch {
    return ''
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
