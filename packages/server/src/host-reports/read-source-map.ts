import { CarpoolError, concurrencyLimitOfOwners } from '@carpool/core'
import { startThread } from '@carpool/core/start-thread'
import { indexSourceMap, type SourceMapIndex } from './source-map-index.ts'

const MIB = 1024 * 1024
const MAX_MAP_BYTES = 16 * MIB
/** Larger ones are read in a thread, which takes tens of ms to start. */
const MAX_BYTES_HERE = MIB / 4
/** Maps of one owner that wait. The lines that wait for them are in memory. */
const MAX_WAITING = 10

/** One at a time, so that maps take no more than a core. */
const inTurn = concurrencyLimitOfOwners(1)
const waiting = new Map<string, number>()

/**
 * Reads a source map when it is its turn.
 * @returns undefined if it is none, or larger than `maxBytes`
 * @throws CarpoolError `saturated` if too many of the owner wait; and what `read` throws
 */
export async function readSourceMap(
  owner: string,
  read: () => string | Promise<string>,
  maxBytes = MAX_MAP_BYTES,
): Promise<SourceMapIndex | undefined> {
  const count = waiting.get(owner) ?? 0
  if (count > MAX_WAITING) throw new CarpoolError('saturated', `${MAX_WAITING} source maps of ${owner} wait, which is the limit.`)
  waiting.set(owner, count + 1)
  try {
    return await inTurn(owner, async () => {
      const text = await read()
      const bytes = Buffer.byteLength(text)
      if (bytes > maxBytes) return undefined
      return bytes > MAX_BYTES_HERE ? await indexInThread(text) : indexSourceMap(text)
    })
  } finally {
    const left = waiting.get(owner)! - 1
    if (left === 0) waiting.delete(owner)
    else waiting.set(owner, left)
  }
}

function indexInThread(text: string): Promise<SourceMapIndex | undefined> {
  return new Promise((resolve, reject) => {
    const options = { workerData: text, name: 'carpool-source-map', env: {} }
    startThread('source-map-thread', import.meta.url, options, reject).on('message', resolve)
  })
}
