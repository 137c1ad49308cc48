import { duplexPair } from 'node:stream'
import t from 'tap'
import { Connection, type Message } from '../src/index.ts'

interface Note {
  readonly type: 'note'
  readonly n: number
}

function pair(): {
  left: Connection<Note, Note>
  right: Connection<Note, Note>
  received: Array<Message<Note>>
  closed: Promise<Error | undefined>
  raw: NodeJS.WritableStream
} {
  const [near, far] = duplexPair()
  const received: Array<Message<Note>> = []
  const { promise: closed, resolve } = Promise.withResolvers<Error | undefined>()
  const left = new Connection<Note, Note>(near, { onMessage: () => {}, onClose: () => {} })
  const right = new Connection<Note, Note>(far, {
    onMessage: (message, text, body) => received.push({ message, text, body }),
    onClose: resolve,
  })
  return { left, right, received, closed, raw: near }
}

t.test('frames arrive in order, and closing sends what is left first', async (t) => {
  const { left, received, closed } = pair()
  for (let n = 0; n < 100; n++) left.send({ type: 'note', n }, `text ${n}`)
  left.close()
  t.equal(await closed, undefined)
  t.strictSame(
    received.map(({ message, text }) => [message.n, text]),
    Array.from({ length: 100 }, (_, n) => [n, `text ${n}`]),
  )
})

t.test('large bodies arrive as they were, beside small ones and in order', async (t) => {
  const { left, received, closed } = pair()
  const sizes = [0, 10, 5_000_000, 3, 200_000, 0, 70_000]
  const bodies = sizes.map((size, n) => Buffer.alloc(size, n + 1))
  for (const [n, body] of bodies.entries()) left.send({ type: 'note', n }, `text ${n}`, body)
  left.close()
  t.equal(await closed, undefined)
  t.strictSame(
    received.map(({ message, text }) => [message.n, text]),
    sizes.map((_, n) => [n, `text ${n}`]),
  )
  for (const [n, { body }] of received.entries())
    t.ok(Buffer.compare(body, bodies[n]!) === 0, `body ${n} of ${body.length} bytes`)
})

t.test('a peer that sends no frames is closed with the reason', async (t) => {
  const { raw, closed } = pair()
  raw.write(Buffer.alloc(64, 0xff))
  t.match(await closed, { message: 'The peer broke the protocol.' })
})

t.test('a small message does not wait until a large body is with the peer', async (t) => {
  const { left, received, closed } = pair()
  const large = Buffer.alloc(50_000_000, 7)
  const holder = { owner: 'o', functionName: 'f' }
  left.bodies.enter(holder, large, (body) => left.send({ type: 'note', n: 1 }, 'large', body))
  left.send({ type: 'note', n: 2 }, 'small')
  left.bodies.enter(holder, Buffer.alloc(300_000, 8), (body) => {
    left.send({ type: 'note', n: 3 }, 'second', body)
    left.close()
  })
  t.equal(await closed, undefined)
  t.same(
    received.map(({ message, text }) => [message.n, text]),
    [
      [2, 'small'],
      [1, 'large'],
      [3, 'second'],
    ],
  )
  t.ok(large.equals(received[1]!.body))
})
