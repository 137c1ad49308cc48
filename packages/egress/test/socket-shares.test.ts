/** What sockets of one function open, hold and read takes nothing from another. */
import { createServer, type Socket } from 'node:net'
import type { Holder } from '@carpool/core'
import t, { type Test } from 'tap'
import { Fetcher } from '../src/fetcher.ts'
import { ReadTurns, type Reader } from '../src/read-turns.ts'
import { TestSockets, type TestSocket } from './fixtures/test-sockets.ts'
import { fetchBy, listen, text, upstream } from './fixtures/upstream.ts'

const KB = 1024

async function peer(t: Test, handler: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    handler(socket)
  })
  return listen(t, server)
}

function flood(socket: Socket): void {
  const goOn = (): void => {
    while (socket.write(Buffer.alloc(64 * KB))) {}
  }
  socket.on('drain', goOn)
  goOn()
}

const settled = ({ connections, closed }: TestSocket): boolean => connections.length > 0 || closed !== undefined

t.test('a function has so many sockets at once, and others have theirs', async (t) => {
  const port = await peer(t, () => {})
  const sockets = new TestSockets({ limits: { maxSocketsPerFunction: 3 } })
  const [first, ...others] = Array.from({ length: 5 }, () => sockets.open({ port }))
  await Promise.all([first!, ...others].map((socket) => socket.until(settled)))
  t.same(
    [first!, ...others].map(({ closed }) => closed?.ok ?? true),
    [true, true, true, false, false],
  )
  t.match(others[3]?.closed, { code: 'EMFILE', message: 'Too many sockets of this function are open; the limit is 3 at once.' })
  await sockets.open({ port }, { functionName: 'other' }).untilConnected()
  first!.stop()
  await first!.untilClosed()
  await sockets.open({ port }).untilConnected()
})

t.test('sockets and fetches share connections: idle sockets are not more than a share of them', async (t) => {
  const port = await peer(t, () => {})
  const origin = await upstream(t, (_request, response) => response.end('answered'))
  const sockets = new TestSockets({ limits: { maxConnections: 9 } })
  const fetcher = new Fetcher({}, sockets.outside)
  const many = Array.from({ length: 6 }, () => sockets.open({ port, timeoutMs: 500 }))
  await Promise.all(many.map((socket) => socket.until(settled)))
  const ends = many.map(({ closed }) => (closed?.ok === false ? closed.code : 'open'))
  t.same(ends, ['open', 'open', 'open', 'ETIMEDOUT', 'ETIMEDOUT', 'ETIMEDOUT'], 'a third for one function')
  t.match(many[5]?.closed, { message: /had to wait for other connections of this function/ })
  for (let call = 0; call < 5; call++) t.equal(text(await fetchBy(fetcher, origin, { functionName: 'other' })), 'answered')
  t.ok(fetcher.reading.connections <= 9)
  t.equal(fetcher.reading.sockets, 3)
})

t.test('peers that flood a function which does not read take no more than its share of memory', async (t) => {
  const port = await peer(t, flood)
  const maxMemoryBytes = 3 * 1024 * KB
  const sockets = new TestSockets({ limits: { maxMemoryBytes } })
  const flooded = Array.from({ length: 20 }, () => {
    const socket = sockets.open({ port }, { functionName: 'flooded' })
    socket.takes = false
    return socket
  })
  await Promise.all(flooded.map((socket) => socket.untilConnected()))
  const neighbour = sockets.open({ port }, { functionName: 'neighbour', owner: 'another' })
  await neighbour.until(({ closed, received }) => closed !== undefined || received.length > 2 * maxMemoryBytes)
  t.equal(neighbour.closed, undefined)
  neighbour.stop()
  await neighbour.untilClosed()
  const held = flooded.reduce((sum, { received }) => sum + received.length, 0)
  t.ok(held <= maxMemoryBytes / 3, `${held} bytes`)
  // Those that have waited go on when others give back.
  const waiting = flooded.find(({ received }) => received.length < 64 * KB)!
  const before = waiting.received.length
  for (const socket of flooded) {
    socket.takes = true
    socket.credit(socket.received.length)
  }
  await waiting.until(({ received }) => received.length > before)
  for (const socket of flooded) socket.stop()
  await Promise.all(flooded.map((socket) => socket.untilClosed()))
  t.ok(sockets.isClean)
})

t.test(
  'those that read much wait for the next turns, in a fair order, and those that read little do not wait for all of them',
  (t) => {
    const turns: Array<() => void> = []
    const reads = new ReadTurns((callback) => turns.push(callback))
    const order: string[] = []
    const read = (name: string, holder: Holder, bytes: number): boolean => {
      const reader: Reader = { readAgain: () => order.push(name) }
      return reads.took(holder, bytes, reader)
    }
    const flood = { owner: 'flood', functionName: 'flood' }
    const other = { owner: 'other', functionName: 'other' }
    const went = Array.from({ length: 100 }, (_, index) => read(`flood ${index}`, flood, 64 * KB)).filter(Boolean)
    t.equal(went.length, 31, 'two megabytes')
    t.notOk(read('other', other, 10))
    turns.shift()?.()
    t.equal(order.length, 32, 'so many read in the next turn')
    t.ok(order.indexOf('other') < 2, 'it is not behind the flood')
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn()
    t.equal(order.length, 70)
    t.ok(read('after', other, 10), 'nobody waits any more')
    t.end()
  },
)
