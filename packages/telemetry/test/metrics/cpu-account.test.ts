import fc from 'fast-check'
import t from 'tap'
import { CPU_PARTS, CpuAccount } from '../../src/metrics/cpu-account.ts'

t.test('every part is what was told, and the rest is worked out', async (t) => {
  const account = new CpuAccount()
  account.host(1, { processUs: 1_000, loopUs: 100, isolatesUs: 600, blanksUs: 50, memoryWatchUs: 5 })
  account.host(2, { processUs: 2_000, loopUs: 200, isolatesUs: 700, blanksUs: 60, memoryWatchUs: 6 })
  account.billed('invocations', 400)
  account.billed('invocations', 300)
  account.billed('starts', 200)
  account.billed('background', 100)
  t.strictSame(account.totalsUs(), {
    'invocations': 700,
    'starts': 200,
    'background': 100,
    'blanks': 110,
    'memory-watch': 11,
    'loop': 300,
    'threads': 3_000 - 300 - 1_300,
    'unattributed': 1_300 - 110 - 11 - 1_000,
  })
})

t.test('at first there is nothing', async (t) => {
  const totals = new CpuAccount().totalsUs()
  t.strictSame(Object.keys(totals).toSorted(), [...CPU_PARTS].toSorted())
  t.ok(Object.values(totals).every((us) => us === 0))
})

t.test('whatever is told, the parts add up to the last that each host told, and no bill is lost', async () => {
  const us = fc.nat(1_000_000_000)
  const time = fc.record({ processUs: us, loopUs: us, isolatesUs: us, blanksUs: us, memoryWatchUs: us })
  const step = fc.oneof(
    fc.record({ host: fc.nat(5), time }),
    fc.record({ part: fc.constantFrom('invocations' as const, 'starts' as const, 'background' as const), us }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50, size: 'max' }), (steps) => {
      const account = new CpuAccount()
      const last = new Map<number, number>()
      const billed = { invocations: 0, starts: 0, background: 0 }
      for (const each of steps) {
        if ('host' in each) {
          account.host(each.host, each.time)
          last.set(each.host, each.time.processUs)
        } else {
          account.billed(each.part, each.us)
          billed[each.part] += each.us
        }
      }
      const totals = account.totalsUs()
      const sum = CPU_PARTS.reduce((sum, part) => sum + totals[part], 0)
      const processUs = [...last.values()].reduce((sum, us) => sum + us, 0)
      return sum === processUs && Object.entries(billed).every(([part, us]) => totals[part as keyof typeof billed] === us)
    }),
  )
})
