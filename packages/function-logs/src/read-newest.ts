import { open } from 'node:fs/promises'
import type { LogLine } from '@carpool/core'

const BLOCK_BYTES = 64 * 1024
const NEWLINE = 0x0a

/** The last lines of the files, oldest first. `paths` goes from the newest file to the oldest; a missing file is an empty one. */
export async function readNewest(paths: readonly string[], limit: number): Promise<LogLine[]> {
  let newest: LogLine[] = []
  for (const path of paths) {
    if (newest.length >= limit) break
    newest = [...(await readTail(path, limit - newest.length)), ...newest]
  }
  return newest
}

async function readTail(path: string, limit: number): Promise<LogLine[]> {
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
    return lines.flatMap(parse).slice(-limit)
  } finally {
    await file.close()
  }
}

/** A server that was killed leaves a line cut short: it is left out. */
function parse(text: string): LogLine[] {
  try {
    return text === '' ? [] : [JSON.parse(text) as LogLine]
  } catch {
    return []
  }
}
