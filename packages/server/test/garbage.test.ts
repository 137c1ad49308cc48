/** How V8 collects the server's garbage. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'

interface Made {
  readonly majors: number
  readonly peakMb: number
}

const support = (file: string): string => join(import.meta.dirname, 'support', file)

const makeBuffers = (way: 'counted' | 'plain'): Made =>
  JSON.parse(execFileSync(process.execPath, [support('new-buffers.mjs'), way, '30', '12'], { encoding: 'utf8' })) as Made

/** Runs it again, twice at most, after too many collections: where a busy machine delays its marking, V8 collects more often. */
function makeCountedBuffers(tooMany: number): Made {
  let made = makeBuffers('counted')
  for (let round = 1; round < 3 && made.majors >= tooMany; round++) made = makeBuffers('counted')
  return made
}

t.test('new buffers do not have V8 go through the whole heap, and are collected all the same', async (t) => {
  const plain = makeBuffers('plain')
  const counted = makeCountedBuffers(plain.majors / 3)
  t.ok(plain.majors > 10, `${plain.majors} collections of the whole heap`)
  t.ok(counted.majors < plain.majors / 3, `${counted.majors} rather than ${plain.majors}`)
  t.ok(counted.peakMb < plain.peakMb + 200, `${counted.peakMb} MiB at most, and ${plain.peakMb}`)
})

t.test('a server that has come to rest gives back what its heap has grown by', async (t) => {
  const text = execFileSync(process.execPath, [support('at-rest.mjs')], { encoding: 'utf8', timeout: 60_000 })
  const { before, filled, collected } = JSON.parse(text) as Record<'before' | 'filled' | 'collected', number>
  t.ok(filled > before + 32, `${filled} MiB after ${before}`)
  t.ok(collected <= before + 32, `${collected} MiB at rest`)
})
