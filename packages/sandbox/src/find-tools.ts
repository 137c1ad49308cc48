import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import type { CageTools } from './cage-plan.ts'

/** Where the system's own programs are. Not the PATH of whoever starts the server: what stands there first would make the cage. */
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin']

export function findTools(): CageTools {
  const [sh, setpriv, bubblewrap] = ['sh', 'setpriv', 'bwrap'].map(find)
  return {
    ...(sh !== undefined && { sh }),
    ...(setpriv !== undefined && { setpriv }),
    ...(bubblewrap !== undefined && { bubblewrap }),
  }
}

function find(name: string): string | undefined {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
