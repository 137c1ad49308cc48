import { readFile } from 'node:fs/promises'

/**
 * The last lines of NDJSON files, the newest last. Reads whole files, so they must be of a bounded size.
 * @param paths from the newest file to the oldest; a missing file is an empty one
 */
export async function readLastLines<T>(paths: readonly string[], limit: number): Promise<T[]> {
  let newest: T[] = []
  for (const path of paths) {
    if (newest.length >= limit) break
    newest = [...(await lastOf<T>(path, limit - newest.length)), ...newest]
  }
  return newest
}

async function lastOf<T>(path: string, limit: number): Promise<T[]> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return ''
    throw cause
  })
  const lines: T[] = []
  let end = text.length
  while (end > 0 && lines.length < limit) {
    const start = text.lastIndexOf('\n', end - 1) + 1
    lines.unshift(...parsed<T>(text.slice(start, end)))
    end = start - 1
  }
  return lines
}

/** A process that was killed leaves a line cut short: it is left out. */
function parsed<T>(line: string): T[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as T]
  } catch {
    return []
  }
}
