import fc from 'fast-check'
import t from 'tap'
import { backoffMs } from '../src/index.ts'

t.test('the first failure costs no wait; what keeps failing is tried ever more rarely', async (t) => {
  t.same(
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((failures) => backoffMs(failures, 5_000)),
    [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000],
  )
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000 }),
      (failures) => backoffMs(failures, 10_000) <= backoffMs(failures + 1, 10_000) && backoffMs(failures, 10_000) <= 10_000,
    ),
  )
})
