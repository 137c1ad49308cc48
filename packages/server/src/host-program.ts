import { existsSync, readFileSync, realpathSync } from 'node:fs'
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
