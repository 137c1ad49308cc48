import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'

/** Of V8's line for a collection of a whole heap. */
const COLLECTION = /^\[\d+:(0x[0-9a-f]+)\] .*?Mark-Compact/

t.test('a collection of the host waits for few of those of isolates, however many are at their limits', async (t) => {
  const script = join(import.meta.dirname, 'support/collecting-together.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--trace-gc', script])
  const collections = stdout.split('\n').flatMap((line) => COLLECTION.exec(line)?.[1] ?? [])
  // The host's heap is the first that is collected.
  const host = /:(0x[0-9a-f]+)\]/.exec(stdout)?.[1]
  const between: number[] = []
  for (const isolate of collections) {
    if (isolate === host) between.push(0)
    else if (between.length > 0) between.push(between.pop()! + 1)
  }
  const waitedFor = between.slice(0, -1).toSorted((a, b) => a - b)
  t.ok(waitedFor.length > 5, `${waitedFor.length} collections of the host`)
  const most = waitedFor[Math.floor(0.9 * waitedFor.length)]!
  // Without an order among them 15 to 17, for most of the isolates wait for V8's lock before it.
  t.ok(most <= 7, `${most} of isolates for nine of ten: ${waitedFor.join(' ')}`)
})
