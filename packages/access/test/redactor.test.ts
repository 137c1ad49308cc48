import fc from 'fast-check'
import t from 'tap'
import { createRedactor } from '../src/index.ts'

const SECRET = 's3cr3t/ü+"\n~%value'
const redact = createRedactor([
  ['API_KEY', SECRET],
  ['PIN', '12345'],
])

t.test('a value is taken out in every form in which it comes to stand in a log', async (t) => {
  const bytes = Buffer.from(SECRET)
  const forms = {
    'as it is': SECRET,
    'json in json': JSON.stringify(JSON.stringify(SECRET)).slice(3, -3),
    'shown by the console': JSON.stringify(SECRET).slice(1, -1).replaceAll('\\"', '"'),
    'json shown by the console': JSON.stringify(JSON.stringify(SECRET).slice(1, -1)).slice(1, -1).replaceAll('\\"', '"'),
    'json': JSON.stringify(SECRET).slice(1, -1),
    'hex': bytes.toString('hex'),
    'hex in capitals': bytes.toString('hex').toUpperCase(),
    'base64': bytes.toString('base64'),
    'base64url': bytes.toString('base64url'),
    'of a URL': encodeURIComponent(SECRET),
    'of a URL in small letters': encodeURIComponent(SECRET).replaceAll(/%../g, (octet) => octet.toLowerCase()),
    'of a form': new URLSearchParams({ key: SECRET }).toString().slice('key='.length),
  }
  for (const [name, form] of Object.entries(forms)) {
    t.equal(redact(form), '[secret API_KEY]', name)
    t.equal(redact(`(${form})(${form})`), '([secret API_KEY])([secret API_KEY])', name)
  }
})

t.test('in the base64 of a longer text only what is around it stays', async (t) => {
  for (const user of ['a', 'ab', 'abc']) {
    const credentials = Buffer.from(`${user}:${SECRET} and more`).toString('base64')
    const text = redact(`authorization: Basic ${credentials}`)
    t.match(text, /^authorization: Basic [\w+/]{2,6}\[secret API_KEY\][\w+/=]{10,16}$/)
  }
})

t.test('where a text was cut the beginning of a value counts', async (t) => {
  const marks = ['', '… (9 more characters)', '… (9 more characters cut)', "'… 9 more characters", "'… 9 more characters }"]
  for (const mark of marks) {
    for (const length of [6, 7, SECRET.length - 1]) {
      t.equal(redact(`key: ${SECRET.slice(0, length)}${mark}`), `key: [secret API_KEY]${mark}`, `${length} before "${mark}"`)
    }
    t.equal(redact(`key: ${SECRET.slice(0, 5)}${mark}`), `key: ${SECRET.slice(0, 5)}${mark}`)
    const hex = Buffer.from(SECRET).toString('hex').slice(0, -1)
    t.equal(redact(`${hex}${mark}`), `[secret API_KEY]${mark}`)
  }
  t.equal(redact(`${SECRET.slice(0, 10)} and on`), `${SECRET.slice(0, 10)} and on`, 'not in the middle')
})

t.test('short values and other texts stay', async (t) => {
  for (const text of ['', '12345', 'short', 's3cr3', 's3cr3t?', SECRET.slice(1), 'x'.repeat(100_000)]) t.equal(redact(text), text)
  t.equal(createRedactor([])('a text'), 'a text')
  t.equal(createRedactor([['PIN', '12345']])('12345'), '12345')
})

t.test('of values that begin alike the longest counts', async (t) => {
  const similar = createRedactor([
    ['A', 'secret'],
    ['B', 'secret-and-more'],
    ['C', 'secret-and'],
  ])
  t.equal(similar('secret-and-more secret-and secret'), '[secret B] [secret C] [secret A]')
})

const LONG = `-----BEGIN KEY-----\n${'abcdefgh🚗'.repeat(2_000)}-----END KEY-----`

t.test('a large value is taken out as a whole, and what was cut short of it as far as it is there', async (t) => {
  const large = createRedactor([
    ['KEY', LONG],
    ['OTHER', `${LONG}, another`],
  ])
  t.equal(large(`<${LONG}>`), '<[secret KEY]>')
  t.equal(large(`<${LONG}, another>`), '<[secret OTHER]>')
  t.equal(large(`<${LONG.slice(0, 5_000)}… (cut)`), '<[secret KEY]… (cut)')
  t.equal(large(`<${Buffer.from(LONG).toString('hex')}>`), '<[secret KEY]>')
  t.match(large(Buffer.from(LONG).toString('base64')), /^\[secret KEY\].{0,3}$/, 'but for the last few bits')
  t.equal(large(`${LONG.slice(0, 100)}.`), `${LONG.slice(0, 100)}.`, 'as its beginning alone may stand anywhere')
  t.equal(large(LONG.slice(0, 100)), '[secret KEY]', 'but not where the text ends')
})

t.test('a text that looks all over like the beginnings of secrets is withheld, not searched for minutes', async (t) => {
  const alike = createRedactor(Array.from({ length: 100 }, (_, index) => [`KEY_${index}`, `${'a'.repeat(250)}${index}`] as const))
  const text = 'a'.repeat(16_384)
  t.equal(alike(text), '[16384 characters withheld: they look like the beginnings of secrets]')
  t.equal(alike(`x ${'a'.repeat(250)}7`), 'x [secret KEY_7]')
  const large = createRedactor(
    Array.from({ length: 100 }, (_, index) => [`KEY_${index}`, `${'b'.repeat(60_000)}${index}`] as const),
  )
  t.match(large('b'.repeat(16_384)), /withheld/)
})

t.test('whatever stands around secrets stays, and nothing of them does', async () => {
  const secret = fc.stringMatching(/^[a-f0-9!]{6,40}$/)
  const filler = fc.stringMatching(/^[g-z ]{0,30}$/)
  fc.assert(
    fc.property(fc.array(secret, { minLength: 1, maxLength: 5 }), fc.array(fc.tuple(filler, fc.nat())), (secrets, parts) => {
      const redactAll = createRedactor(secrets.map((value) => ['K', value] as const))
      const text = parts.map(([before, index]) => `${before}|${secrets[index % secrets.length]}|`).join('')
      return redactAll(text) === parts.map(([before]) => `${before}|[secret K]|`).join('')
    }),
  )
})
