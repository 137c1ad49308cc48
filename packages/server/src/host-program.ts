import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostProgram } from '@carpool/fleet'
import type { ServerSettings } from './settings.ts'

/**
 * How to start a host process. It gets Node's permission model with leave to read the program's own files and to load the isolate addon,
 * and nothing else: no network, no other files, no writing, no child processes, no workers, no environment.
 * `--no-node-snapshot` is what isolated-vm asks for: isolates with other snapshots than Node's own share the process.
 */
export function hostProgram(settings: ServerSettings, { runtime, maxHosts }: { runtime: string; maxHosts: number }): HostProgram {
  const { prewarm, maxIsolates, maxBodyBytes, enteredIsolates, entrySliceMs } = settings
  const memoryBudgetBytes = settings.hostMemoryMb * 1024 * 1024 || shareOfMemory(maxHosts)
  const main = fileURLToPath(import.meta.resolve('@carpool/host/process'))
  return {
    nodePath: process.execPath,
    nodeArguments: [
      '--no-node-snapshot',
      // Memory of an isolate that is given up goes back to the system; else V8 keeps it for isolates whose threads sleep.
      '--no-memory-pool-share-memory-on-teardown',
      '--permission',
      '--allow-addons',
      ...programFolders(main).map((folder) => `--allow-fs-read=${join(folder, '*')}`),
      `--allow-fs-read=${LIBC_MARK}`,
      '--disable-warning=SecurityWarning',
      '--disable-sigusr1',
      main,
    ],
    setup: { type: 'setup', prewarm, maxIsolates, maxBodyBytes, enteredIsolates, entrySliceMs, memoryBudgetBytes },
    runtime,
  }
}

/** What hosts may take together of the machine's memory, or of the control group's: the rest is the server's and the system's. */
const MEMORY_SHARE = 0.8

function shareOfMemory(maxHosts: number): number {
  // Where there is no limit it is larger than any machine.
  const bytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return Math.floor((bytes * MEMORY_SHARE) / maxHosts)
}

/** The addon's loader looks here for which C library it is to be loaded with. */
const LIBC_MARK = '/etc/alpine-release'

/**
 * The folders of the host's package and of all that it depends on, wherever they really are, and the `node_modules` they are found through.
 */
function programFolders(main: string): string[] {
  const packages = [realpathSync(dirname(dirname(main)))]
  const folders = new Set(packages)
  for (const folder of packages) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>
    }
    const searched = createRequire(join(folder, 'package.json')).resolve.paths('x') ?? []
    for (const name of Object.keys(dependencies)) {
      const modules = searched.find((candidate) => existsSync(join(candidate, name)))
      if (modules === undefined) continue
      folders.add(modules)
      const found = realpathSync(join(modules, name))
      if (folders.has(found)) continue
      folders.add(found)
      packages.push(found)
    }
  }
  return [...folders]
}
