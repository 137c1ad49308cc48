import fc from 'fast-check'
import t from 'tap'
import { chooseHost, respawnDelayMs } from '../src/index.ts'
import { parseResponseHead } from '../src/response-head.ts'

t.test('a host that has the code comes before an idler one that has not, until it is far busier', async (t) => {
  const busy = { inFlight: 7, hasRevision: true }
  const idle = { inFlight: 0, hasRevision: false }
  t.equal(chooseHost([idle, busy]), busy)
  const busier = { inFlight: 9, hasRevision: true }
  t.equal(chooseHost([idle, busier]), idle)
  t.equal(chooseHost([busier, busy]), busy)
  t.equal(chooseHost([]), undefined)
})

t.test('the first death costs no wait; a host that cannot live is tried ever more rarely', async (t) => {
  t.equal(respawnDelayMs(1), 0)
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1000 }),
      (n) => respawnDelayMs(n) <= respawnDelayMs(n + 1) && respawnDelayMs(n) <= 10_000,
    ),
  )
})

t.test('a sound response head is passed on', async (t) => {
  const head = { status: 201, headers: [['content-type', 'text/plain']] }
  t.strictSame(parseResponseHead(JSON.stringify(head)), head)
})

const bad: Array<[string, unknown, RegExp]> = [
  ['a status that is no final one', { status: 101, headers: [] }, /200 to 599/],
  ['a status that is no number', { status: '200', headers: [] }, /200 to 599/],
  ['a header that splits the response', { status: 200, headers: [['a', 'b\r\nset-cookie: x']] }, /"a" is not valid/],
  ['a header name with a colon', { status: 200, headers: [['a:', 'b']] }, /"a:" is not valid/],
  ['a header value that is no text', { status: 200, headers: [['a', undefined]] }, /must be texts/],
  ['headers that are no list', { status: 200, headers: {} }, /headers/],
  ['too many headers', { status: 200, headers: Array.from({ length: 201 }, () => ['a', 'b']) }, /200 headers/],
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
