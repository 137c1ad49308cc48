import t from 'tap'
import { ERRORS, retryAfterSeconds, type ErrorCode } from '../src/index.ts'

const CODES = Object.keys(ERRORS) as ErrorCode[]

t.test('every 429 and 503 says when to come back, in whole seconds, and nothing else does', async (t) => {
  for (const code of CODES) {
    const seconds = retryAfterSeconds(code, Math.random)
    const { status } = ERRORS[code]
    if (status === 429 || status === 503) t.ok(Number.isInteger(seconds) && Number(seconds) > 0, code)
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
