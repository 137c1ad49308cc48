import fc from 'fast-check'
import t from 'tap'
import { isCrash, suspectsOf } from '../src/health/suspects.ts'
import { isDueForRecycling } from '../src/health/recycling.ts'

t.test('a crash is what code does to its process, not what others do to it', async (t) => {
  for (const signal of ['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGTRAP', 'SIGBUS', 'SIGFPE'] as const) {
    t.ok(isCrash({ exitCode: null, signal }), signal)
  }
  for (const exitCode of [132, 133, 134, 135, 136, 139]) t.ok(isCrash({ exitCode, signal: null }), `exit code ${exitCode}`)
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT'] as const) t.notOk(isCrash({ exitCode: null, signal }), signal)
  for (const exitCode of [0, 1, 137, 143]) t.notOk(isCrash({ exitCode, signal: null }), `exit code ${exitCode}`)
})

t.test('suspects: those in long entries; else those that ran; nobody if it was no crash', async (t) => {
  const crash = { exitCode: null, signal: 'SIGSEGV' } as const
  t.strictSame(suspectsOf(crash, { inLongEntries: ['evil'], running: ['evil', 'near'] }), ['evil'])
  t.strictSame(suspectsOf(crash, { inLongEntries: [], running: ['evil', 'near'] }), ['evil', 'near'])
  t.strictSame(suspectsOf({ exitCode: null, signal: 'SIGKILL' }, { inLongEntries: ['evil'], running: ['evil'] }), [])
})

t.test('hosts are due at their age or count, up to a fifth earlier; never without a limit', async (t) => {
  const policy = { maxAgeMs: 1_000, maxInvocations: 100 }
  t.notOk(isDueForRecycling({ ageMs: 999, invocations: 99, lot: 0 }, policy))
  t.ok(isDueForRecycling({ ageMs: 1_000, invocations: 0, lot: 0 }, policy))
  t.ok(isDueForRecycling({ ageMs: 0, invocations: 100, lot: 0 }, policy))
  t.ok(isDueForRecycling({ ageMs: 800, invocations: 0, lot: 1 }, policy))
  fc.assert(
    fc.property(fc.nat(), fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (ageMs, invocations, lot) => {
      return !isDueForRecycling({ ageMs, invocations, lot }, { maxAgeMs: 0, maxInvocations: 0 })
    }),
  )
})
