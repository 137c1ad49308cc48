import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { openFileSync, readLastLines, RotatingFile } from '../src/index.ts'

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
          await file.append(batch.map(lineOf).join(''))
          lines.push(...batch)
        }
        const last = (await readLastLines<Line>(file.paths, limit)).map(({ value }) => value)
        t.ok(file.paths.every((each) => !existsSync(each) || statSync(each).size <= 200 || countOf(each) <= 5))
        return JSON.stringify(last) === JSON.stringify(last.length === 0 ? [] : lines.slice(-last.length)) && last.length <= limit
      },
    ),
  )
})

t.test('what was written before it was ours goes on; a line that was cut short is left out, or is no object', async (t) => {
  const before = `${lineOf('1')}null\n5\n"text"\n[{}]\n${lineOf('2')}{"cut":`
  const path = join(t.testdir({ 'a.ndjson': before }), 'a.ndjson')
  const file = new RotatingFile(path, { maxFileBytes: 1_000, olderFiles: 1 })
  await file.append(lineOf('3'))
  t.same(await readLastLines(file.paths, 10), [{ value: '1' }, { value: '2' }, { value: '3' }])
  t.equal(readFileSync(path, 'utf8'), `${before}\n${lineOf('3')}`)
})

t.test('lines that are longer than a block are read whole, and no more of them than asked for', async (t) => {
  const path = join(t.testdir(), 'long.ndjson')
  const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(100_000))
  writeFileSync(path, texts.map(lineOf).join(''))
  const lines = texts.map((value) => ({ value }))
  t.same(await readLastLines([path], 2), lines.slice(1))
  t.same(await readLastLines([path, join(t.testdirName, 'missing.ndjson')], 9), lines)
})

t.test('a write that fails is told, and the next one works when it can', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'logs', 'a.ndjson')
  writeFileSync(join(folder, 'logs'), 'no folder')
  const file = new RotatingFile(path, { maxFileBytes: 1_000, olderFiles: 1 })
  await t.rejects(file.append(lineOf('1')), { code: /EEXIST|ENOTDIR/ })
  rmSync(join(folder, 'logs'))
  await file.append(lineOf('2'))
  t.same(await readLastLines(file.paths, 10), [{ value: '2' }])
  t.equal(statSync(path).mode & 0o777, 0o600)
  await file.erase()
  t.same(await readLastLines(file.paths, 10), [])
})

t.test('a folder or a named pipe in place of a file is told, and nothing waits for it', async (t) => {
  const folder = t.testdir({ 'folder.ndjson': {} })
  const pipe = join(folder, 'pipe.ndjson')
  execFileSync('mkfifo', [pipe])
  for (const path of [join(folder, 'folder.ndjson'), pipe]) {
    await t.rejects(new RotatingFile(path, { maxFileBytes: 1_000, olderFiles: 1 }).append(lineOf('1')))
    const told = {
      code: 'data-unusable',
      message: `${basename(path)} in the data folder is no file, but a folder, a named pipe or the like.`,
    }
    await t.rejects(readLastLines([path], 1), told)
    t.throws(() => openFileSync(path), told)
  }
})

interface Line {
  readonly value: string
}

function lineOf(value: string): string {
  return `${JSON.stringify({ value } satisfies Line)}\n`
}

function countOf(path: string): number {
  return readFileSync(path, 'utf8').split('\n').length - 1
}
