/** The end of a socket is an entry of its own: who waits for its last bytes goes on before, as in Node.js. */
import { ENTRIES, STREAM_FLAGS, STREAM_OWNERS } from '@carpool/runtime/bridge'
import t from 'tap'
import { Account } from '../src/accounting/account.ts'
import { Stream } from '../src/calls/streams.ts'
import type { Entry } from '../src/scheduler/batch.ts'

type Part = [text: string, isEnd: boolean]

/** What goes in of a stream that was told this, in order. */
function entriesOf(of: 'socket' | 'call', parts: readonly Part[], takesEach = false): Part[] {
  const entries: Entry[] = []
  const listener = { overran: (): void => {} }
  const stream = new Stream({ of, number: 1, account: new Account(), listener }, {} as never, () => {})
  const pushSoon = (entry: Entry): void => {
    entry.hasGoneIn = takesEach
    entries.push(entry)
  }
  stream.attach({ streams: new Map(), queue: { pushSoon }, holder: {} as never })
  for (const [text, end] of parts) stream.came(end ? { end } : {}, '', Buffer.from(text))
  return entries.map(({ op, kind, body }) => {
    t.equal(op, ENTRIES.streamData)
    t.equal(kind & ~STREAM_FLAGS.end, STREAM_OWNERS.indexOf(of))
    return [body, (kind & STREAM_FLAGS.end) !== 0]
  })
}

t.test('bytes and the end of a socket that come together go in apart', async (t) => {
  t.same(entriesOf('socket', [['last', true]]), [
    ['last', false],
    ['', true],
  ])
})

t.test('the end of a socket by itself is one entry', async (t) => {
  t.same(entriesOf('socket', [['', true]]), [['', true]])
})

t.test('the end of a socket is no part of bytes that still wait', async (t) => {
  const told: Part[] = [
    ['first ', false],
    ['last', true],
  ]
  t.same(entriesOf('socket', told), [
    ['first last', false],
    ['', true],
  ])
  t.same(entriesOf('socket', told, true), [
    ['first ', false],
    ['last', false],
    ['', true],
  ])
})

t.test('nothing comes behind the end', async (t) => {
  const told: Part[] = [
    ['', true],
    ['more', false],
  ]
  t.same(entriesOf('socket', told), [['', true]])
})

t.test('the end of a body goes in with its last bytes', async (t) => {
  t.same(entriesOf('call', [['last', true]]), [['last', true]])
})
