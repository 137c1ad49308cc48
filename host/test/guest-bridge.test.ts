import fc from 'fast-check'
import t from 'tap'
import { decodeBody, encodeBody } from '../src/isolates/guest-bridge.ts'

t.test('any bytes come back as they were', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3000 }), (bytes) => Buffer.compare(decodeBody(...encodeBody(bytes)), bytes) === 0),
  )
})

t.test('valid UTF-8 travels as text, also with a byte order mark', async (t) => {
  const bytes = Buffer.from('\ufeffgrüße 😀')
  t.equal(encodeBody(bytes)[0], 'text')
  t.equal(Buffer.compare(decodeBody(...encodeBody(bytes)), bytes), 0)
  t.equal(encodeBody(Buffer.from([0xff, 0xfe]))[0], 'bytes')
})
