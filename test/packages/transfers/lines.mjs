import { Readable } from 'node:stream'

const PART_BYTES = 65_536

/** How many bytes all of them have made, those that were closed before their end, and what was caught. */
export const seen = { bytes: 0, closed: 0, errors: [] }

/**
 * Lines with the number of their part, made as they are read.
 * @param end what they end at, in bytes, as a file does whose disk fails; default: they do not
 */
export function linesOf(totalBytes, end = Infinity) {
  let at = 0
  return new Readable({
    read() {
      if (at >= end) return void this.destroy(new Error('broken on purpose'))
      const size = Math.min(PART_BYTES, totalBytes - at)
      if (size <= 0) return void this.push(null)
      const part = Buffer.alloc(size, `part ${at / PART_BYTES}\n`)
      at += size
      seen.bytes += size
      this.push(part)
    },
    destroy(error, done) {
      if (at < totalBytes) seen.closed++
      done(error)
    },
  })
}
