import { statSync } from 'node:fs'

/** Tells whether there is still the same file at the path as when this was called. */
export function fileIdentity(path: string): () => boolean {
  const { dev, ino } = statSync(path)
  return () => {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats !== undefined && stats.dev === dev && stats.ino === ino
  }
}
