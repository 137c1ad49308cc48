import { open } from 'node:fs/promises'

const BLOCK_BYTES = 64 * 1024
const NEWLINE = 0x0a

/**
 * The last lines of files with one JSON value a line, oldest first. No more of the files is read than that takes.
 * @param paths from the newest file to the oldest; a missing file is an empty one
 */
export async function readLastLines<T>(paths: readonly string[], limit: number): Promise<T[]> {
  let newest: T[] = []
  for (const path of paths) {
    if (newest.length >= limit) break
    newest = [...(await readTail<T>(path, limit - newest.length)), ...newest]
  }
  return newest
}

async function readTail<T>(path: string, limit: number): Promise<T[]> {
  const file = await open(path, 'r').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined
    throw cause
  })
  if (file === undefined) return []
  try {
    const blocks: Buffer[] = []
    let start = (await file.stat()).size
    for (let newlines = 0; start > 0 && newlines <= limit; ) {
      const length = Math.min(BLOCK_BYTES, start)
      start -= length
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, start)
      const block = buffer.subarray(0, bytesRead)
      blocks.unshift(block)
      newlines += block.reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0)
    }
    const lines = Buffer.concat(blocks).toString('utf8').split('\n')
    // Reading began in the middle of the first one.
    if (start > 0) lines.shift()
    return lines.flatMap((line) => parsed<T>(line)).slice(-limit)
  } finally {
    await file.close()
  }
}

/** A process that was killed leaves a line cut short: it is left out. */
function parsed<T>(line: string): T[] {
  try {
    return line === '' ? [] : [JSON.parse(line) as T]
  } catch {
    return []
  }
}
