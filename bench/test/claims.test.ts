import t from 'tap'
import { higher, lower, never, told, type BenchDocument, type Claim, type Figure } from '../src/claims/claim.ts'
import { CLAIMS } from '../src/claims/claims.ts'
import { CODE_CLAIMS } from '../src/claims/code-claims.ts'
import { compareClaim } from '../src/claims/compare.ts'
import { claimsOfSection, findMarks, replaceMarks } from '../src/claims/marks.ts'
import { provenanceLine, type StoredClaim } from '../src/claims/stored.ts'
import { callsIn, inWords, megabytes, ms, range, whole } from '../src/claims/words.ts'

const HERE = { commit: 'abc1234', machine: 'Some CPU, 2 cores', node: 'v26.10.0', date: '2026-11-22' }

function documentWith(...verdicts: BenchDocument['verdicts']): BenchDocument {
  return { environment: {} as BenchDocument['environment'], verdicts, results: {} }
}

function judgements(figure: Figure, was: number | undefined, document = documentWith(), isQuick = false): string[] {
  const reading = { text: '', figures: { it: figure } }
  const claim: Claim = {
    name: 'one',
    bench: 'sleep',
    verdicts: /./,
    quick: { verdicts: /counts/, figures: ['it'] },
    read: () => reading,
  }
  const stored: StoredClaim | undefined = was === undefined ? undefined : { ...HERE, text: '', figures: { it: was } }
  return compareClaim(claim, reading, document, stored, isQuick).map(({ judgement }) => judgement)
}

t.test('a figure holds within its noise, and is better or worse beyond', async (t) => {
  t.strictSame(judgements(lower(115), 100), ['holds'])
  t.strictSame(judgements(lower(116), 100), ['WORSE'])
  t.strictSame(judgements(lower(84), 100), ['better'])
  t.strictSame(judgements(higher(84), 100), ['WORSE'])
  t.strictSame(judgements(lower(5, { noiseBy: 2 }), 3), ['holds'])
  t.strictSame(judgements(told(5), 3), ['holds'])
  t.strictSame(judgements(lower(1e9), undefined), ['holds'], 'nothing to compare with')
})

t.test('what must not happen is broken, whatever it was', async (t) => {
  t.strictSame(judgements(never(0), 0), ['holds'])
  t.strictSame(judgements(never(1), 5), ['BROKEN'])
  t.strictSame(judgements(lower(Number.NaN), 5), ['BROKEN'])
})

t.test('demands of the bench that are not met break the claim, aims do not', async (t) => {
  const verdict = (kind: 'demand' | 'aim', isMet: boolean, claim = 'time'): BenchDocument['verdicts'][number] => ({
    kind,
    claim,
    isMet,
    detail: '3 ms (at most 2 ms)',
  })
  t.strictSame(judgements(lower(1), 1, documentWith(verdict('demand', true))), ['holds'])
  t.strictSame(judgements(lower(1), 1, documentWith(verdict('demand', false))), ['holds', 'BROKEN'])
  t.strictSame(judgements(lower(1), 1, documentWith(verdict('aim', false))), ['holds', 'holds'])
  t.strictSame(judgements(lower(1), 1, documentWith(verdict('demand', false)), true), ['holds'], 'not what a short run shows')
  t.strictSame(judgements(lower(1), 1, documentWith(verdict('demand', false, 'counts')), true), ['holds', 'BROKEN'])
})

t.test('what stands between marks is found and replaced', async (t) => {
  const text =
    '# A\n<!-- claim a -->1<!-- /claim --> <!-- measured --><!-- /measured -->\n## B\n<!-- claim b -->\n\n2\n\n<!-- /claim -->\n'
  const marks = findMarks(text, 'x.md')
  t.match(marks, [
    { kind: 'claim', name: 'a', content: '1' },
    { kind: 'measured', name: '', content: '' },
    { kind: 'claim', name: 'b', content: '\n\n2\n\n' },
  ])
  const [, measured] = marks
  if (measured === undefined) return t.fail('there is a mark for where it was measured')
  t.strictSame(claimsOfSection(text, marks, measured), ['a'])
  t.equal(
    replaceMarks(text, 'x.md', ({ name }) => ({ a: 'longer', b: '' })[name]),
    '# A\n<!-- claim a -->longer<!-- /claim --> <!-- measured --><!-- /measured -->\n## B\n<!-- claim b --><!-- /claim -->\n',
  )
  for (const wrong of ['<!-- claim a -->', '<!-- claim -->1<!-- /claim -->', '<!-- claim a --><!-- claim b -->1<!-- /claim -->'])
    t.throws(() => findMarks(wrong, 'x.md'), SyntaxError, wrong)
})

t.test('where and when it was measured, each place once', async (t) => {
  const one = '2026-11-22, commit abc1234, Some CPU, 2 cores, Node 26.10.0'
  t.equal(provenanceLine([['a', HERE]]), one)
  t.equal(
    provenanceLine([
      ['a', HERE],
      ['b', HERE],
      ['c', { ...HERE, commit: 'def5678' }],
    ]),
    `${one}; \`c\`: ${one.replace('abc1234', 'def5678')}`,
  )
})

t.test('numbers as the texts have them', async (t) => {
  t.strictSame([0, 4, 11, 12_345].map(inWords), ['none', 'four', '11', '12,345'])
  t.strictSame([0.123, 2.54, 12.4, 999.6, 1090].map(ms), ['0.12 ms', '2.5 ms', '12 ms', '1,000 ms', '1.1 s'])
  t.strictSame(
    [range([3, 5], ms), range([3.01, 3.02], ms), range([900, 1900], ms)],
    ['3.0 to 5.0 ms', '3.0 ms', '900 ms to 1.9 s'],
  )
  t.equal(megabytes(5_460_445), '5.5 MB')
  t.equal(whole(33_602.2), '33,602')
  t.strictSame([callsIn('5 x 200, 3 x 503 saturated'), callsIn('5 x 200, 3 x 503 saturated', /^2/)], [8, 5])
})

t.test('every claim has a name of its own, and the code has what its claims read', async (t) => {
  const names = [...CLAIMS, ...CODE_CLAIMS].map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  for (const { name, text } of CODE_CLAIMS) t.match(text(), /\S/, name)
})
