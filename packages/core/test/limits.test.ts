import fc from 'fast-check'
import t from 'tap'
import {
  checkEnv,
  checkFunctionName,
  CarpoolError,
  LIMIT_RANGES,
  problemOfError,
  problemOfOutcome,
  resolveLimits,
  type FunctionLimits,
} from '../src/index.ts'

t.test('limits that are not given have their defaults', async (t) => {
  t.strictSame(resolveLimits({}), {
    memoryMb: 256,
    cpuMs: 1_000,
    wallMs: 30_000,
    streamMs: 3_600_000,
    idleMs: 300_000,
    concurrency: 10_000,
  })
})

t.test('a limit is taken just when it is a whole number in its range', async () => {
  const names = Object.keys(LIMIT_RANGES) as Array<keyof FunctionLimits>
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.oneof(fc.integer(), fc.double()), (name, value) => {
      const { min, max } = LIMIT_RANGES[name]
      const isGood = Number.isInteger(value) && value >= min && value <= max
      try {
        return resolveLimits({ [name]: value })[name] === value && isGood
      } catch (error) {
        return !isGood && error instanceof CarpoolError && error.message.includes(`${min} to ${max}`)
      }
    }),
  )
})

t.test('names are DNS labels', async (t) => {
  for (const name of ['a', 'a1', 'my-app', '0', 'a'.repeat(63)]) t.equal(checkFunctionName(name), name)
  for (const name of ['', '-a', 'a-', 'A', 'a.b', 'a/b', 'a'.repeat(64), '__proto__', 'ä']) {
    t.throws(() => checkFunctionName(name), { code: 'invalid-name' })
  }
})

t.test('a long bad name is cut in the message', async (t) => {
  t.throws(() => checkFunctionName('A'.repeat(10_000)), { message: /^.{0,300}$/ })
})

t.test('problem documents carry a stable code and the status of the table', async (t) => {
  t.match(problemOfError(new CarpoolError('saturated', 'full')), {
    status: 503,
    code: 'saturated',
    detail: 'full',
    type: 'urn:carpool:error:saturated',
  })
  t.match(problemOfOutcome('timeout', 'late', 'id'), { status: 504, code: 'timeout', detail: 'late', invocationId: 'id' })
})

t.test('what is not our error becomes internal and shows nothing', async (t) => {
  const error = CarpoolError.from(new Error('/secret/path'))
  t.equal(error.code, 'internal')
  t.notMatch(error.message, /secret/)
  t.match(error.cause, { message: '/secret/path' })
  t.equal(CarpoolError.from(error), error)
})

t.test('an env has a limit, and the message says which', async (t) => {
  checkEnv({ A: 'x'.repeat(256 * 1024 - 1) })
  t.throws(() => checkEnv({ A: 'x'.repeat(256 * 1024) }), {
    code: 'invalid-config',
    message: /262145 characters together; the limit is 262144/,
  })
})
