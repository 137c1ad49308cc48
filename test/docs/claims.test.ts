/**
 * What the texts state as measured, or as the code has it, is what is stored and what the code has; and no other figure stands
 * in README.md.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findMarks } from '../../bench/src/claims/marks.ts'
import { readStored } from '../../bench/src/claims/stored.ts'
import { checkText, checkTexts } from '../../bench/src/claims/texts.ts'
import { ROOT } from '../support/command.ts'

/** Numbers with a unit that may stand in README.md by hand: each with a piece of its line, and why. */
const BY_HAND: ReadonlyArray<readonly [piece: string, reason: string]> = [
  ['about 100 ms of CPU and then waits for 2 s', 'what the seed function does'],
  ['1,000 calls at once that sleep 1 s', 'load of bench:sleep'],
  ['slows from 10 ms to 2 s at 300 calls/s', 'load of bench:scaling'],
  ['110 deploys under 200 calls/s', 'load of bench:deploy'],
  ['50 calls at a time of 1 to 100 ms', 'load of bench:metering'],
  ['each once a second for a minute beside 50 calls/s', 'load of bench:containment'],
  ['20 endless loops at once, with 500 ms of CPU each', 'load of bench:containment'],
  ['bodies of 1 GiB', 'load of bench:streams'],
  ['every 5 s for two minutes at 200 calls/s', 'load of bench:containment'],
]
const UNIT = /\d[\d,.]*\s?(?:µs|ms|s|KB|MB|GB|KiB|MiB|GiB|bytes|%|x|cores?|minutes?|seconds?|(?:calls|req)\/s)(?![\w-])/g

t.test('the texts match', async (t) => {
  t.strictSame(checkTexts(readStored()), [])
})

t.test('figures in README.md are generated, or on the list with a reason', async (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  t.strictSame(handwritten(readme), [])
  for (const [piece] of BY_HAND) t.ok(readme.includes(piece), `README.md still has: ${piece}`)
})

t.test('a figure by hand, a changed one, and marks without a claim are noticed', async (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const stored = readStored()
  t.strictSame(handwritten(`${readme}\nAnswers take 3 ms, and 12 % of them 1.5x as long.\n`), ['3 ms', '12 %', '1.5x'])
  const [sleep] = findMarks(readme, 'README.md').filter(({ name }) => name === 'sleep')
  if (sleep === undefined) return t.fail('README.md has the claim sleep')
  const changed = readme.slice(0, sleep.start) + sleep.content.replace('one', 'two') + readme.slice(sleep.end)
  t.match(checkText(changed, 'README.md', stored), [/^README\.md:\d+: sleep is ".*two.*", and should be/])
  t.match(checkText('<!-- claim nothing -->5<!-- /claim -->', 'x.md', stored), [/^x\.md:1: there is no claim named nothing/])
  t.throws(() => checkText('<!-- claim sleep -->5', 'x.md', stored), /x\.md:1: .* is not closed/)
})

/** Numbers with a unit that stand neither between marks, nor in code, nor on the list. */
function handwritten(readme: string): string[] {
  const marks = findMarks(readme, 'README.md')
  const outside = marks.reduceRight((text, { start, end }) => text.slice(0, start) + text.slice(end), readme)
  const prose = outside.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '')
  const rest = BY_HAND.reduce((text, [piece]) => text.replaceAll(piece.replaceAll(/`[^`\n]*`/g, ''), ''), prose)
  return [...rest.matchAll(UNIT)].map(([found]) => found)
}
