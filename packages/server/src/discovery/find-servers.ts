import { readLiveEntries, type ServerAddress } from './server-entry.ts'
import { isTrusted, stateFolders, type Environment } from './state-folders.ts'

/**
 * The servers that run on this machine as this user, the one that started last first.
 * @param env where the state folder is looked up; default: the process's own
 */
export function findServers(env: Environment = process.env): readonly ServerAddress[] {
  return stateFolders(env)
    .filter(isTrusted)
    .flatMap(readLiveEntries)
    .toSorted(lastStartedFirst)
    .map((entry) => {
      const { processMark: _, ...address } = entry
      return address
    })
}

function lastStartedFirst(a: ServerAddress, b: ServerAddress): number {
  return a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : 0
}
