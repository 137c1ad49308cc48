import t from 'tap'
import { Meter } from '../src/index.ts'

t.test('every outcome counts as an invocation, and all but ok as a failure', async (t) => {
  const meter = new Meter()
  for (const outcome of ['ok', 'exception', 'ok', 'timeout'] as const) meter.record('f', outcome)
  t.strictSame(meter.usageOf('f'), { invocations: 4, failures: 2 })
  t.strictSame(meter.usageOf('other'), { invocations: 0, failures: 0 })
})
