import { readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostProgram } from '@carpool/fleet'
import type { ServerSettings } from './settings.ts'

/**
 * How to start a host process. It gets Node's permission model with leave to read the program's own files and to load the isolate addon,
 * and nothing else: no network, no other files, no writing, no child processes, no workers, no environment.
 * `--no-node-snapshot` is what isolated-vm asks for: isolates with other snapshots than Node's own share the process.
 */
export function hostProgram(settings: ServerSettings, runtime: string): HostProgram {
  const main = fileURLToPath(import.meta.resolve('@carpool/host/process'))
  return {
    nodePath: process.execPath,
    nodeArguments: [
      '--no-node-snapshot',
      '--permission',
      '--allow-addons',
      ...programFolders(main).map((folder) => `--allow-fs-read=${join(folder, '*')}`),
      `--allow-fs-read=${LIBC_MARK}`,
      '--disable-warning=SecurityWarning',
      '--disable-sigusr1',
      main,
    ],
    setup: { type: 'setup', prewarm: settings.prewarm, maxIsolates: settings.maxIsolates, maxBodyBytes: settings.maxBodyBytes },
    runtime,
  }
}

/** The addon's loader looks here for which C library it is to be loaded with. */
const LIBC_MARK = '/etc/alpine-release'

/** The folders of the host's package and of those it depends on, and the `node_modules` they are found through. */
function programFolders(main: string): string[] {
  const hostFolder = dirname(dirname(main))
  const { dependencies } = JSON.parse(readFileSync(join(hostFolder, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const require = createRequire(main)
  const found = Object.keys(dependencies).flatMap((name) => {
    const searched = require.resolve.paths(name) ?? []
    return searched.flatMap((folder) => resolvedIn(folder, name))
  })
  return [...new Set([hostFolder, ...found])]
}

function resolvedIn(modulesFolder: string, name: string): string[] {
  try {
    return [modulesFolder, realpathSync(join(modulesFolder, name))]
  } catch {
    return []
  }
}
