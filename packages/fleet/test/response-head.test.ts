import t from 'tap'
import { parseResponseHead } from '../src/pool/response-head.ts'

t.test('a sound response head is passed on', async (t) => {
  const head = { status: 201, headers: [['content-type', 'text/plain']] }
  t.strictSame(parseResponseHead(JSON.stringify(head)), head)
  const odd =
    '{"status":200,"headers":[["__proto__","a"],["Constructor","b"],["set-cookie","c=1"],["set-cookie","d=2"]],"__proto__":{"status":1}}'
  t.strictSame(parseResponseHead(odd), {
    status: 200,
    headers: [
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['set-cookie', 'c=1'],
      ['set-cookie', 'd=2'],
    ],
  })
  const largest = { status: 200, headers: Array.from({ length: 64 }, () => ['a', '\t'.repeat(1023)]) }
  t.strictSame(parseResponseHead(JSON.stringify(largest)), largest)
})

const bad: Array<[string, unknown, RegExp]> = [
  ['a status that is no final one', { status: 100, headers: [] }, /200 to 599/],
  ['a status below that of a WebSocket', { status: 102, headers: [] }, /200 to 599/],
  ['a status that is no number', { status: '200', headers: [] }, /200 to 599/],
  ['a header that splits the response', { status: 200, headers: [['a', 'b\r\nset-cookie: x']] }, /"a" is not valid/],
  ['a header name with a colon', { status: 200, headers: [['a:', 'b']] }, /"a:" is not valid/],
  ['a header value that is no text', { status: 200, headers: [['a', undefined]] }, /must be texts/],
  ['headers that are no list', { status: 200, headers: {} }, /headers/],
  ['too many headers', { status: 200, headers: Array.from({ length: 101 }, () => ['a', 'b']) }, /101 headers; the limit is 100/],
  ['too long headers', { status: 200, headers: Array.from({ length: 65 }, () => ['a', 'b'.repeat(1024)]) }, /limit is 65536/],
  ['a head that is endless', { status: 200, headers: [['a', 'b'.repeat(1_000_000)]] }, /limit is 65536/],
  ['a header of three', { status: 200, headers: [['a', 'b', 'c']] }, /pair/],
  ['a header value that is a header', { status: 200, headers: [['a', ['b', 'c']]] }, /must be texts/],
  ['a header that ends the head', { status: 200, headers: [['a', 'b\0']] }, /"a" is not valid/],
  ['a header with what is no byte', { status: 200, headers: [['a', '\u560a\u560d']] }, /"a" is not valid/],
  ['a header without a name', { status: 200, headers: [['', 'b']] }, /"" is not valid/],
  ['a status that is a fraction', { status: 200.5, headers: [] }, /200 to 599/],
  ['a head that is no object', 5, /200 to 599/],
]
for (const [what, head, message] of bad) {
  t.test(`${what} is refused`, async (t) => {
    t.match(parseResponseHead(JSON.stringify(head)), message)
  })
}

t.test('a head that is no JSON is refused', async (t) => {
  t.match(parseResponseHead('{'), /not readable/)
})
