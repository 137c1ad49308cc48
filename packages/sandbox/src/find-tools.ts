import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CageTools } from './cage-plan.ts'

/** Where the system's own programs are. Not the PATH of whoever starts the server: what stands there first would make the cage. */
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin']

/** A bubblewrap that may not be run is found too: that is not the same as none. */
export function findTools(folders: readonly string[] = FOLDERS): CageTools {
  const executable = (name: string): string | undefined => pathsOf(name, folders).find(isExecutable)
  const [sh, setpriv] = [executable('sh'), executable('setpriv')]
  const bubblewrap = executable('bwrap') ?? pathsOf('bwrap', folders).find((path) => existsSync(path))
  return {
    ...(sh !== undefined && { sh }),
    ...(setpriv !== undefined && { setpriv }),
    ...(bubblewrap !== undefined && { bubblewrap }),
  }
}

function pathsOf(name: string, folders: readonly string[]): readonly string[] {
  return folders.map((folder) => join(folder, name))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
