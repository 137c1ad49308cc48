import { readFileSync, statSync } from 'node:fs'
import type { Clock } from '@carpool/core'

const FRESH_MS = 5_000

/** Gives what a file of the system says, parsed, as it was 5 s ago at most. A file that cannot be read counts as empty. */
export function createFileView<T>(path: string, parse: (text: string) => T, clock: Clock): () => T {
  let view = parse('')
  let version = ''
  let lookedAtMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = clock()
    if (nowMs - lookedAtMs < FRESH_MS) return view
    lookedAtMs = nowMs
    const seen = versionOf(path)
    if (seen === version) return view
    version = seen
    view = parse(seen === '' ? '' : textOf(path))
    return view
  }
}

function versionOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
