import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { readLastLines, RotatingFile } from '../src/index.ts'

t.test('whatever is appended, the last lines are the last that were, and no file is larger than it may be', async (t) => {
  let run = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.string(), { minLength: 1, maxLength: 5 }), { maxLength: 20 }),
      fc.nat(20),
      async (batches, limit) => {
        const path = join(t.testdir(), `${run++}.ndjson`)
        const file = new RotatingFile(path, { maxFileBytes: 200, olderFiles: 2 })
        const lines: string[] = []
        for (const batch of batches) {
          await file.append(batch.map((value) => `${JSON.stringify(value)}\n`).join(''))
          lines.push(...batch)
        }
        const last = await readLastLines<string>(file.paths, limit)
        t.ok(file.paths.every((each) => !existsSync(each) || statSync(each).size <= 200 || countOf(each) <= 5))
        return JSON.stringify(last) === JSON.stringify(last.length === 0 ? [] : lines.slice(-last.length)) && last.length <= limit
      },
    ),
  )
})

t.test('what was written before it was ours goes on, a line that was cut short is left out', async (t) => {
  const path = join(t.testdir({ 'a.ndjson': '1\n2\n{"cut":' }), 'a.ndjson')
  const file = new RotatingFile(path, { maxFileBytes: 1_000, olderFiles: 1 })
  await file.append('3\n')
  t.same(await readLastLines(file.paths, 10), [1, 2, 3])
  t.equal(readFileSync(path, 'utf8'), '1\n2\n{"cut":\n3\n')
})

t.test('lines that are longer than a block are read whole, and no more of them than asked for', async (t) => {
  const path = join(t.testdir(), 'long.ndjson')
  const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(100_000))
  writeFileSync(path, texts.map((text) => `${JSON.stringify(text)}\n`).join(''))
  t.same(await readLastLines([path], 2), texts.slice(1))
  t.same(await readLastLines([path, join(t.testdirName, 'missing.ndjson')], 9), texts)
})

t.test('a write that fails is told, and the next one works when it can', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'logs', 'a.ndjson')
  writeFileSync(join(folder, 'logs'), 'no folder')
  const file = new RotatingFile(path, { maxFileBytes: 1_000, olderFiles: 1 })
  await t.rejects(file.append('1\n'), { code: /EEXIST|ENOTDIR/ })
  rmSync(join(folder, 'logs'))
  await file.append('2\n')
  t.same(await readLastLines(file.paths, 10), [2])
  t.equal(statSync(path).mode & 0o777, 0o600)
  await file.erase()
  t.same(await readLastLines(file.paths, 10), [])
})

function countOf(path: string): number {
  return readFileSync(path, 'utf8').split('\n').length - 1
}
