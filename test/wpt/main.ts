/**
 * `npm run test:wpt`: runs the Web Platform Tests in guests and in this Node.js, prints what the latter passes and what of it the
 * former do, and fails if something is missing that expectations.json does not name, or an area is below its aim.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  ALL,
  compare,
  EXPECTATIONS_FILE,
  type Outcome,
  percentOf,
  readExpectations,
  regressionsOf,
  rootsOf,
  rowsOf,
} from './compare.ts'
import { writeTable } from './document.ts'
import { ecma429, renderEcma429 } from './ecma-429.ts'

const AIM_PERCENT = 95
/** How much of a test is printed. */
const PROBLEM_CHARS = 300
const MISSING_LINES = 20

const HELP = `npm run test:wpt -- [options] [area or part of a path …]
  --wpt <folder[:folder…]>  where the tests are; default: CARPOOL_WPT. test/wpt/collect.sh takes them out of a repository
  --update                  write to expectations.json what is missing now, of the tests that were run
  --write                   write the tables to docs/web-apis.md: that of ECMA-429, and that of the tests if all were run
  --verbose                 name each subtest that is missing
  --markdown                print the table as Markdown
  --jobs <n>                tests at the same time; default: 2`

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    wpt: { type: 'string', default: process.env['CARPOOL_WPT'] ?? '' },
    update: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '2' },
    help: { type: 'boolean', default: false },
  },
})

const roots = rootsOf(values.wpt)
if (values.help || roots.length === 0) {
  console.log(HELP)
  process.exit(values.help ? 0 : 2)
}
const outcomes = await compare({ roots, names, jobs: Number(values.jobs) }, (outcome) => {
  if (outcome.missing.length > 0 && values.verbose) console.log(describe(outcome))
})
const rows = rowsOf(outcomes)
console.log(renderRows(values.markdown))
if (values.write) writeTable('ecma-429', renderEcma429(ecma429()))
if (values.write && names.length === 0) writeTable('wpt', renderRows(true))
if (values.update) {
  const found = Object.fromEntries(outcomes.map(expectationOf))
  // Other folders have other tests.
  const all = Object.entries({ ...readExpectations(), ...found })
    .filter(([, missing]) => missing.length > 0)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  writeFileSync(EXPECTATIONS_FILE, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
}
const regressions = regressionsOf(outcomes, readExpectations())
for (const regression of regressions) console.log(`not expected: ${regression}`)
const below = rows.filter((row) => percentOf(row) < AIM_PERCENT)
for (const row of below) console.log(`below ${AIM_PERCENT} %: ${row.area}`)
process.exit(regressions.length > 0 || below.length > 0 ? 1 : 0)

function describe({ path, nodePasses, missing, problem }: Outcome): string {
  const why = problem === undefined ? '' : `, ${problem.slice(0, PROBLEM_CHARS)}`
  return [
    `${path}: ${missing.length} of ${nodePasses}${why}`,
    ...missing.slice(0, MISSING_LINES).map((name) => `    ${name}`),
  ].join('\n')
}

function renderRows(isMarkdown: boolean): string {
  const head = ['area', 'tests', 'subtests', 'Node.js passes', 'of which a guest', '%']
  const cells = rows.map((row) => [row.area, row.tests, row.subtests, row.nodePasses, row.passes, percentOf(row)].map(String))
  if (isMarkdown)
    return [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...cells]
      .map((row) => `| ${row.join(' | ')} |`)
      .join('\n')
  const widths = head.map((title, column) => Math.max(title.length, ...cells.map((row) => row[column]!.length)))
  return [head, ...cells]
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '))
    .join('\n')
}

function expectationOf({ path, nodePasses, missing }: Outcome): [path: string, missing: readonly string[]] {
  return [path, missing.length === nodePasses && missing.length > 1 ? [ALL] : missing]
}
