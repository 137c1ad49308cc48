/**
 * Runs all cases one after the other, in the full form or, with `--form quick`, as `npm test` does, and prints what was seen.
 * `npm run claims` writes it to docs/isolation.md.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { benchArguments } from '../../bench/src/lib/arguments.ts'
import { readEnvironment } from '../../bench/src/lib/environment.ts'
import { publish } from '../../bench/src/lib/report.ts'
import { measureSteadiness } from '../../bench/src/lib/steadiness.ts'
import { runTap } from '../../bench/src/lib/tap-run.ts'
import { atLeast, atMost } from '../../bench/src/lib/verdict.ts'
import { readRows, renderTable, ROWS_FOLDER } from './harness/table.ts'

/** How long the machine is measured before the first case, in ms. */
const STEADINESS_MS = { full: 20_000, quick: 200 }
/** What a check of the neighbour's latency says. */
const LATENCY = /: its p99 was /

const options = benchArguments('npm run test:isolation -- [options]', {
  files: { help: 'tests to run', default: 'test/isolation/*.test.ts' },
  form: { help: 'full, or quick as in npm test', default: 'full' },
  neighbour: { help: 'function, or process: the same on plain Node.js, in a process of its own', default: 'function' },
})
const form = options.word('form', ['full', 'quick'])
const neighbour = options.word('neighbour', ['function', 'process'])
const environment = readEnvironment()
const steadiness = await measureSteadiness(STEADINESS_MS[form])
const folder = mkdtempSync(join(tmpdir(), 'carpool-isolation-'))
try {
  const { passed, failed } = await runTap(options.text('files').split(','), {
    CARPOOL_ISOLATION: form,
    CARPOOL_ISOLATION_NEIGHBOUR: neighbour,
    [ROWS_FOLDER]: folder,
  })
  const rows = readRows(folder)
  const wrong = failed.filter((name) => !LATENCY.test(name))
  publish(
    {
      // The results of Carpool are not overwritten.
      bench: neighbour === 'function' ? 'isolation' : `isolation-${neighbour}`,
      title: 'Attacks, each beside a neighbour',
      environment,
      blocks: [renderTable(rows), ...(failed.length > 0 ? [failed.map((name) => `not ok: ${name}`).join('\n')] : [])],
      verdicts: [
        atLeast('demand', 'isolation: checks that pass, without which this shows nothing', passed, 1, String),
        atMost('demand', 'isolation: checks that fail, but for the latency of the neighbour', wrong.length, 0, String),
        atMost('aim', 'isolation: attacks that slow the neighbour beyond the aim', failed.length - wrong.length, 0, String),
      ],
      results: { rows, passed, wrong, steadiness, slowed: failed.length - wrong.length, table: renderTable(rows) },
    },
    options,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
