import fc from 'fast-check'
import t from 'tap'
import { jsonLine } from '../src/index.ts'

t.test('any value is one line of characters that can be printed, and is read back as it was', async () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.string(),
    ),
  })
  fc.assert(
    fc.property(fc.dictionary(text, text), (value) => {
      const line = jsonLine(value)
      const isSound = line.endsWith('\n') && !/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u.test(line.slice(0, -1))
      return isSound && JSON.stringify(JSON.parse(line)) === JSON.stringify(value)
    }),
  )
})

t.test('what readers and terminals take for something else is escaped', async (t) => {
  t.equal(jsonLine({ a: '\u0085\u2028\u2029\u007f\u009b\ud800\n' }), '{"a":"\\u0085\\u2028\\u2029\\u007f\\u009b\\ud800\\n"}\n')
})
