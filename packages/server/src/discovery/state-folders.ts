import { lstatSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The folders that may hold announcements, best first: the server takes the first it can write to, the command reads them all.
 * `CARPOOL_STATE_DIR` stands alone; without it the user's state folder comes before a folder of this user in the temp folder.
 */
export function stateFolders(env: Environment): readonly string[] {
  if (env['CARPOOL_STATE_DIR']) return [env['CARPOOL_STATE_DIR']]
  return [userFolder(env), sharedFolder()].filter((folder) => folder !== undefined)
}

/**
 * Whether what the folder holds can only come from this user. In a temp folder that all users share, another user may have made the
 * folder first, to have our token or to be sent our code.
 */
export function isTrusted(folder: string): boolean {
  if (folder !== sharedFolder()) return true
  const found = lstatSync(folder, { throwIfNoEntry: false })
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
}

function userFolder(env: Environment): string | undefined {
  const stateHome = env['XDG_STATE_HOME']
  // The XDG specification has relative paths ignored.
  if (stateHome && isAbsolute(stateHome)) return join(stateHome, 'carpool', 'servers')
  const home = env['HOME'] || homeFolder()
  return home && isAbsolute(home) ? join(home, '.local', 'state', 'carpool', 'servers') : undefined
}

function homeFolder(): string | undefined {
  try {
    return homedir()
  } catch {
    // A user without an entry in the password file, as containers have.
    return undefined
  }
}

function sharedFolder(): string {
  return join(tmpdir(), `carpool-${process.getuid?.() ?? 'user'}`)
}
