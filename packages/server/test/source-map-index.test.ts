import { SourceMap, type SourceMapPayload } from 'node:module'
import { transform } from 'esbuild'
import t from 'tap'
import { indexSourceMap, originOf, type SourceMapIndex } from '../src/host-reports/source-map-index.ts'

const textOf = (mappings: string, more: object = {}): string =>
  JSON.stringify({ version: 3, sources: ['a.js'], names: [], mappings, ...more })

t.test('positions lead to where Node.js says, wherever marks stand', async (t) => {
  const lines = Array.from({ length: 1_000 }, (_, line) => `export const name${line} = (x) => [x, ${line}, 'ä']\n\n`)
  for (const minifyWhitespace of [false, true]) {
    const { code, map } = await transform(lines.join(''), { sourcemap: 'external', sourcefile: 'src/app.ts', minifyWhitespace })
    const index = indexSourceMap(map)!
    const reference = new SourceMap(JSON.parse(map) as SourceMapPayload)
    t.ok(index.marks.length > 50)
    const wrong: string[] = []
    for (const [line, text] of code.split('\n').entries()) {
      for (let column = 0; column <= text.length; column += 7) {
        const entry = reference.findEntry(line, column)
        const expected = 'originalSource' in entry && [entry.originalSource, entry.originalLine, entry.originalColumn].join(':')
        const origin = originOf(index, line, column)
        const found = origin !== undefined && [origin.source, origin.line, origin.column].join(':')
        if (found !== expected) wrong.push(`${line}:${column} ${found} ${expected}`)
      }
    }
    t.strictSame(wrong, [])
  }
})

t.test('a mapping that leads nowhere ends the one before it', async (t) => {
  const index = indexSourceMap(textOf('IAAA,IACI,I,IAAA'))!
  t.equal(originOf(index, 0, 3), undefined)
  t.strictSame(originOf(index, 0, 4), { source: 'a.js', line: 0, column: 0 })
  t.strictSame(originOf(index, 0, 11), { source: 'a.js', line: 1, column: 4 })
  t.equal(originOf(index, 0, 12), undefined)
  t.strictSame(originOf(index, 9, 0), { source: 'a.js', line: 1, column: 4 })
})

t.test('what is no source map is none', async (t) => {
  const texts = ['{', 'null', '{}', textOf('?'), textOf('AA'), textOf('AAAAAA'), textOf('gggggggA'), textOf('g')]
  for (const text of texts) t.equal(indexSourceMap(text), undefined, text)
  t.equal(indexSourceMap(textOf('', { x: Array.from({ length: 200_000 }, () => []) })), undefined, 'too many values')
})

t.test('a map takes no more than what it is written with, whatever it says', async (t) => {
  const mappings = ['A,', ';', ',', 'AAAAA,', 'D,', '+++++B,', 'A+++++BAA,'].map((part) => part.repeat(100_000))
  for (const text of mappings) {
    const index = indexSourceMap(textOf(text))!
    t.ok(index.marks.byteLength < 100 + text.length / 32)
    t.doesNotThrow(() => [0, 1, 99_999, 2 ** 40].map((position) => [originOf(index, 0, position), originOf(index, position, 0)]))
  }
  const { sources } = indexSourceMap(
    textOf('', { sources: Array.from({ length: 30_000 }, () => 'x'.repeat(300)) }),
  ) as SourceMapIndex
  t.equal(sources.length, 20_000)
  t.equal(sources[0]!.length, 256)
})
