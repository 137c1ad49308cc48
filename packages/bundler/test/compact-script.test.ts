import { runInThisContext } from 'node:vm'
import t from 'tap'
import { compactScript } from '../src/compact-script.ts'

const MAP = JSON.stringify({ version: 3, sources: ['ü b.mjs', 'a%20b.mjs'], names: [], mappings: 'AAAA;ACAA' })

const SCRIPT = String.raw`
/* A comment with é. */ // and another
//! a license
const raw = String.raw${'`é\\n`'}
const über = 'é€😀'
const found = 'aéb'.replace(/[é]+/u, '-')
function octal() { return 010 + '\101'.length }
return { raw, plain: über, found, octal: octal(), template: ${'`ä${über}`'}, label: (() => { a: for (;;) break a; return 1 })() }
`

t.test('what is compact does the same, without comments and white space, and is ASCII where that can be', async (t) => {
  const whole = `(function () {${SCRIPT}})`
  const { code } = await compactScript({ code: whole, sourceMap: MAP })
  const run = (source: string): unknown => (runInThisContext(source) as () => unknown)()
  t.same(run(code), run(whole))
  t.notMatch(code, /comment|another|license|\n./)
  t.ok(code.length < whole.length * 0.9, `${code.length} of ${whole.length} characters`)
  // What a tag or a regular expression reads as it is written stays as it is.
  const others = code.replaceAll(/`é\\n`|\/\[é\]\+\/u/g, '')
  t.notMatch(others, /[^\n -~]/)
})

t.test('sources keep their names, whatever characters are in them', async (t) => {
  const { sourceMap } = await compactScript({ code: 'const a = 1;\nthrow a', sourceMap: MAP })
  const { sources } = JSON.parse(sourceMap) as { sources: string[] }
  t.same(sources.toSorted(), ['a%20b.mjs', 'ü b.mjs'])
})
