import fc from 'fast-check'
import { join } from 'node:path'
import t from 'tap'
import { coalesce, functionFolder, inputsOutside, isUninteresting } from '../src/dev-loop.ts'
import { linesOf } from '../src/control-request.ts'

t.test('a job asked for while it runs runs once more, and never twice at once', async (t) => {
  const runs: PromiseWithResolvers<void>[] = []
  const ask = coalesce(() => {
    runs.push(Promise.withResolvers<void>())
    return runs.at(-1)?.promise ?? Promise.resolve()
  })
  const rested = ask()
  void ask()
  void ask()
  t.equal(runs.length, 1)
  runs[0]?.resolve()
  while (runs.length < 2) await Promise.resolve()
  runs[1]?.resolve()
  await rested
  t.equal(runs.length, 2)
  const again = ask()
  t.equal(runs.length, 3, 'a rested job starts again')
  runs[2]?.resolve()
  await again
})

t.test('what nobody edits is not watched', async (t) => {
  const folder = '/home/.hidden/node_modules/hello'
  for (const path of ['node_modules/x/index.js', '.git/HEAD', 'src/.cache/a', '.env'])
    t.ok(isUninteresting(folder, join(folder, path)), path)
  for (const path of ['', 'index.ts', 'src/a.ts', '../shared/.config/a.ts'])
    t.notOk(isUninteresting(folder, join(folder, path)), path)
})

t.test('inputs outside of the folder are distinguished from those in it', async (t) => {
  const inputs = ['/w/hello/index.ts', '/w/shared/a.ts', '/w/hello-2/b.ts']
  t.strictSame(inputsOutside('/w/hello', inputs), ['/w/shared/a.ts', '/w/hello-2/b.ts'])
})

t.test('the folder of a function is its own, or that of its file, and must exist', async (t) => {
  const root = t.testdir({ 'a.ts': '' })
  t.equal(functionFolder(root), root)
  t.equal(functionFolder(join(root, 'a.ts')), root)
  t.throws(() => functionFolder(join(root, 'b')), { code: 'entry-not-found' })
})

t.test('lines are the same however the text is cut into chunks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat(200)), async (texts, cuts) => {
      const lines = texts.map((text) => text.replaceAll('\n', '')).filter((text) => text !== '')
      const bytes = Buffer.from(lines.join('\n'))
      const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b), bytes.length]
      const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
      const read = await Array.fromAsync(linesOf(toAsync(chunks)))
      t.strictSame(read, lines)
    }),
  )
})

async function* toAsync<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items
}
