import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const READ = 0o4
const ENTER = 0o1

/**
 * The first of the paths, or of the folders that lead there, that a user without groups may not read or enter; undefined if all is well. Rights
 * that access control lists give are not seen.
 */
export function unreadableBy(uid: number, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    for (const [folder, needed] of wayTo(realpathSync(path))) if (!mayAccess(uid, folder, needed)) return folder
  }
  return undefined
}

function wayTo(path: string): ReadonlyArray<readonly [path: string, needed: number]> {
  const way: Array<readonly [string, number]> = [[path, statSync(path).isDirectory() ? READ | ENTER : READ]]
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    way.unshift([folder, ENTER])
    if (folder === dirname(folder)) return way
  }
}

function mayAccess(uid: number, path: string, needed: number): boolean {
  const { mode, uid: owner, gid } = statSync(path)
  const bits = owner === uid ? mode >> 6 : gid === uid ? mode >> 3 : mode
  return (bits & needed) === needed
}
