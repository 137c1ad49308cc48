/** Whether each call has exactly one record, whatever became of it: the test of that, with as many calls as wanted. */
import { benchArguments } from '../lib/arguments.ts'
import { readEnvironment } from '../lib/environment.ts'
import { publish } from '../lib/report.ts'
import { runTap } from '../lib/tap-run.ts'
import { atLeast, atMost } from '../lib/verdict.ts'

const options = benchArguments('npm run bench:records -- [options]', {
  calls: { help: 'how many calls of all kinds', default: '10000' },
})
const calls = options.whole('calls', 1)
const environment = readEnvironment()
const { passed, failed } = await runTap(['test/flow/records.test.ts'], { CARPOOL_TEST_CALLS: String(calls) })

publish(
  {
    bench: 'records',
    title: `${calls} calls of all kinds, and their records`,
    environment,
    blocks: [`${passed} checks of the calls and the ledger passed, ${failed.length} failed.`],
    verdicts: [
      atMost('demand', 'records: checks that fail', failed.length, 0, String),
      atLeast('demand', 'records: checks that pass, without which this shows nothing', passed, 1, String),
    ],
    results: { calls, passed, failed: failed.length },
  },
  options,
)
