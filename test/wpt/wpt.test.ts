/**
 * A sample of the Web Platform Tests, in guests and in this Node.js: what Node.js passes a guest passes too, but for what
 * expectations.json names. `npm run test:wpt` runs all, and prints a table.
 */
import t from 'tap'
import { readTable } from './document.ts'
import { ecma429, renderEcma429 } from './ecma-429.ts'
import { compare, readExpectations, regressionsOf, rootsOf } from './compare.ts'

const EVERY = 6
const roots = rootsOf(process.env['CARPOOL_WPT'])
const skip = roots.length === 0 && 'CARPOOL_WPT names no folder with the tests: test/wpt/collect.sh makes one from a repository'

t.test('A guest passes what Node.js passes of the Web Platform Tests', { skip }, async (t) => {
  const outcomes = await compare({ roots, every: EVERY })
  t.ok(outcomes.length > 0, 'there are tests')
  t.same(regressionsOf(outcomes, readExpectations()), [])
})

t.test('The table of ECMA-429 in docs/web-apis.md is what a guest has', (t) => {
  t.equal(readTable('ecma-429'), renderEcma429(ecma429()), 'npm run test:wpt -- --write renews it')
  t.end()
})
