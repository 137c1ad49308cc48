import t from 'tap'
import { ERRORS, retryAfterSeconds, type ErrorCode } from '../src/index.ts'

const CODES = Object.keys(ERRORS) as ErrorCode[]

t.test('what may succeed later says when to come back, in whole seconds, and nothing else does', async (t) => {
  for (const code of CODES) {
    const seconds = retryAfterSeconds(code, Math.random)
    if (ERRORS[code].retryable) t.ok(Number.isInteger(seconds) && Number(seconds) > 0, code)
    else t.equal(seconds, undefined, code)
  }
})

t.test('callers of a saturated server are spread over two seconds', async (t) => {
  t.equal(
    retryAfterSeconds('saturated', () => 0),
    1,
  )
  t.equal(
    retryAfterSeconds('saturated', () => 0.999),
    2,
  )
  t.equal(
    retryAfterSeconds('draining', () => 0.999),
    1,
  )
})
