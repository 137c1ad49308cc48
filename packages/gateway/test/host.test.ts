/** What counts as a host: judged by `new URL`, which functions make of the addresses of their requests. */
import fc from 'fast-check'
import t from 'tap'
import { isHost } from '../src/host.ts'

const oneOf = (...choices: string[]): fc.Arbitrary<string> => fc.constantFrom(...choices)
const joined = (parts: fc.Arbitrary<string>, by: string, maxLength: number): fc.Arbitrary<string> =>
  fc.array(parts, { minLength: 1, maxLength }).map((all) => all.join(by))

const number = fc.oneof(
  fc.nat(300).map(String),
  fc.nat(300).map((value) => `0${value.toString(8)}`),
  fc.nat({ max: 2 ** 33 }).map((value) => `0x${value.toString(16)}`),
  oneOf('0x', '08', '4294967295', '4294967296', '1e3', '-1'),
)
const characters = fc.string({ unit: oneOf(...'aAfFxXzZ019_-~'.split('')), maxLength: 8 })
const label = fc.oneof(
  characters,
  number,
  characters.map((text) => `xn--${text}`),
  oneOf('', 'XN--a', 'axn--b', 'xn--bcher-kva', 'xn--zca', 'xn--a-ecp', 'xn--', 'localhost', 'a'.repeat(64), 'b'.repeat(300)),
)
const name = fc.tuple(joined(label, '.', 5), oneOf('', '', '.', '..')).map(([labels, end]) => labels + end)
const piece = fc.oneof(
  fc.nat(0x1ffff).map((value) => value.toString(16)),
  oneOf('', '', '::', '1.2.3.4', '1.2.3.256', '1.2.3'),
)
const ipv6 = joined(piece, ':', 9).map((text) => `[${text}]`)
const port = fc.oneof(
  fc.nat(100_000).map((value) => `:${value}`),
  oneOf('', '', ':', ':0', ':00080', ':65535', ':65536', ':099999', ':-1', ':8 0', ':80:80'),
)
const odd = fc.string({ unit: oneOf(...'ab.:/?#@[]%\\ \t"<>^|`{}\0\x7fé'.split('')), maxLength: 12 })
const anything = fc.oneof(
  fc.tuple(fc.oneof(name, name, ipv6, odd), port).map(([host, end]) => host + end),
  odd,
  fc.string(),
)

t.test('what is let through makes a URL, and is its host alone', async () => {
  fc.assert(
    fc.property(anything, (text) => {
      if (!isHost(text)) return true
      const { host, username, password, pathname, search, hash, href } = new URL(`http://${text}/path`)
      return href === `http://${host}/path` && pathname === '/path' && username + password + search + hash === ''
    }),
    { numRuns: 20_000 },
  )
})

t.test('of what has the form of a host, all is let through that makes a URL', async () => {
  const shaped = fc.tuple(fc.oneof(name, ipv6), port).map(([host, end]) => host + end)
  fc.assert(
    fc.property(shaped, (text) => {
      const hasForm = /^(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(text)
      return isHost(text) === (hasForm && URL.canParse(`http://${text}/`))
    }),
    { numRuns: 20_000 },
  )
})

t.test('what browsers send is let through', async (t) => {
  const international = oneOf('bücher', '例え', 'мир', 'faß', '☃', 'ﬁ', 'a_b', '_dmarc', 'x--y', '9to5')
  const typed = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV6().map((address) => `[${address}]`),
    joined(fc.oneof(international, fc.stringMatching(/^[a-z0-9_]([a-z0-9_-]{0,20}[a-z0-9_])?$/)), '.', 4).map(
      (text) => `${text}.a`,
    ),
  )
  fc.assert(
    fc.property(typed, oneOf('', '.'), fc.option(fc.nat(65_535)), (host, dot, port) => {
      const url = URL.parse(`http://${host}${host.startsWith('[') ? '' : dot}${port === null ? '' : `:${port}`}/`)
      return url === null || isHost(url.host)
    }),
    { numRuns: 5_000 },
  )
  const known = ['localhost:8080', '127.0.0.1:65535', '[::1]:80', 'my_app.example', 'xn--bcher-kva.example', 'a.example.']
  for (const host of known) t.ok(isHost(host), host)
})

t.test('what is none is refused, and quickly', async (t) => {
  const none = ['a.test:99999', 'a.test:65536', '1.2.3.256', '1.2.3.4.5', '[1::2::3]', '[:]', '[1.2.3.4]', 'a:', '']
  for (const host of none) t.notOk(isHost(host), host)
  for (const host of ['a'.repeat(16_000), 'a.'.repeat(8_000), '1.'.repeat(8_000), 'xn--'.repeat(4_000)]) {
    t.notOk(isHost(`${host}!`), 'no form of it takes long')
  }
})
