/** The parts of the gateway that decide without a client. */
import { Readable } from 'node:stream'
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { ByteBudget, type Reservation } from '../src/byte-budget.ts'
import { connectionLimit } from '../src/gateway-limits.ts'
import { Connections, groupOf } from '../src/hardening/connections.ts'
import { RequestBody } from '../src/request-body.ts'

const onBytes = (): void => {}

t.test('a body is what came, however it was cut', async () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 5000 }), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(chunks, async (parts) => {
      const whole = Buffer.concat(parts)
      const incoming = Readable.from(parts.map((part) => Buffer.from(part))) as IncomingMessage
      const body = new RequestBody(incoming, whole.length, onBytes)
      return whole.equals(await body.read())
    }),
  )
})

t.test(
  'a large body that was announced takes little more memory than it has; one that was announced alone takes little',
  async (t) => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const announcedBytes = 80 * chunk.length
    for (const [chunks, mostBytes] of [
      [80, announcedBytes],
      [10, 2 * 10 * chunk.length],
      [21, announcedBytes],
    ] as const) {
      const incoming = Readable.from(Array.from({ length: chunks }, () => Buffer.from(chunk))) as IncomingMessage
      const body = await new RequestBody(incoming, 2 * announcedBytes, onBytes, announcedBytes).read()
      t.equal(body.length, chunks * chunk.length)
      t.ok(body.buffer.byteLength <= mostBytes, `${body.buffer.byteLength} bytes for ${chunks} of 80 chunks`)
    }
  },
)

t.test('a body above the limit is not kept', async () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { minLength: 1, maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(chunks, fc.nat(), async (parts, less) => {
      const length = Buffer.concat(parts).length
      const limitBytes = less % length
      const incoming = Readable.from(parts.map((part) => Buffer.from(part))) as IncomingMessage
      const body = new RequestBody(incoming, limitBytes, onBytes)
      const code = await body.read().catch((error: { code: string }) => error.code)
      return code === 'body-too-large' && body.receivedBytes <= limitBytes
    }),
  )
})

const open = (which: number) => ({ act: 'open', which, bytes: 0 }) as const

t.test('never more is held than the limit, unless nobody can be cut; what is cut is what began first', async () => {
  const step = fc.record({ act: fc.constantFrom('open', 'add', 'settle', 'release'), which: fc.nat(), bytes: fc.nat(100) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const limitBytes = 250
      const budget = new ByteBudget(limitBytes)
      const opened: Array<{ reservation: Reservation; held: number; beganAt: number; isSettled: boolean }> = []
      let begun = 0
      const wrong: string[] = []
      for (const { act, which, bytes } of steps) {
        if (act === 'open') {
          const reservation = budget.open(() => {
            const slow = opened.filter(({ isSettled, held }) => !isSettled && held > 0)
            const [first] = slow.toSorted((a, b) => a.beganAt - b.beganAt)
            if (first?.reservation !== reservation) wrong.push('another one began before')
            opened.splice(opened.indexOf(first!), 1)
          })
          opened.push({ reservation, held: 0, beganAt: 0, isSettled: false })
          continue
        }
        const one = opened[which % Math.max(1, opened.length)]
        if (one === undefined) continue
        if (act === 'add') {
          if (one.held === 0 && bytes > 0) one.beganAt = begun++
          one.held += bytes
          one.reservation.add(bytes)
        } else if (act === 'settle') {
          one.isSettled = one.reservation.settle({ owner: 'o', functionName: `f-${which % 3}` })
        } else {
          one.reservation.release()
          one.reservation.release()
          opened.splice(opened.indexOf(one), 1)
        }
        if (budget.heldBytes !== opened.reduce((sum, { held }) => sum + held, 0)) wrong.push('the sum is wrong')
        if (budget.heldBytes > limitBytes && opened.some(({ isSettled, held }) => !isSettled && held > 0))
          wrong.push('too much is held')
      }
      return wrong.length === 0
    }),
    // One that holds nothing would make no room.
    {
      examples: [
        [
          [
            open(0),
            open(0),
            { act: 'add', which: 1, bytes: 100 },
            { act: 'add', which: 1, bytes: 100 },
            { act: 'add', which: 1, bytes: 51 },
          ],
        ],
      ],
    },
  )
})

t.test('of bodies that have come, one function leaves room for the others', async (t) => {
  const { shares } = new ByteBudget(516)
  const holder = (functionName: string) => ({ owner: 'o', functionName })
  const takenBy = (name: string): number => {
    for (let taken = 0; ; taken++) if (!shares.tryTake(holder(name), 6)) return taken
  }
  t.equal(takenBy('flooded'), 29, 'a third')
  t.equal(takenBy('second'), 19, 'a third of what is left')
  for (let name = 0; name < 20; name++) t.ok(shares.tryTake(holder(`other-${name}`), 6))
  for (let given = 0; given < 29; given++) shares.give(holder('flooded'), 6)
  t.ok(shares.tryTake(holder('flooded'), 6))
  t.notOk(new ByteBudget(5).shares.tryTake(holder('f'), 6), 'never more than there is')
})

t.test('who is refused does not cost a look at all connections each time', async (t) => {
  const state = { nowMs: 0 }
  const limits = { maxConnections: 4, addressConnections: 0 }
  const connections = new Connections({ limits, clock: () => state.nowMs, refuse: (socket) => socket.destroy() })
  const isTakenAt = (nowMs: number): boolean => {
    state.nowMs = nowMs
    return connections.accept(new Socket()) !== undefined
  }
  for (let opened = 0; opened < 4; opened++) t.ok(isTakenAt(0))
  t.notOk(isTakenAt(990), 'all have been used within a second')
  t.notOk(isTakenAt(1010), 'none is looked for so soon')
  for (let opened = 0; opened < 4; opened++) t.ok(isTakenAt(1090), 'while some are found, there is no wait')
  t.notOk(isTakenAt(1090))
})

t.test('at the limit, a hundredth of the connections makes room: those that have been idle for longest', async (t) => {
  const state = { nowMs: 0 }
  const limits = { maxConnections: 300, addressConnections: 0 }
  const connections = new Connections({ limits, clock: () => state.nowMs, refuse: (socket) => socket.destroy() })
  const sockets = Array.from({ length: 300 }, () => new Socket())
  for (const socket of sockets) {
    state.nowMs++
    connections.accept(socket)
  }
  state.nowMs = 10_000
  t.ok(connections.accept(new Socket()))
  const closed = sockets.flatMap(({ destroyed }, index) => (destroyed ? [index] : []))
  t.strictSame(closed, [0, 1, 2], 'to look for them costs more than to close them')
})

t.test('whose an address is', async (t) => {
  const groups = {
    '192.0.2.7': '192.0.2.7',
    '::ffff:192.0.2.7': '192.0.2.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2',
    '2001:db8:1:2::6': '2001:db8:1:2',
    '2001:db8::6': '2001:db8:0:0',
    '2001:db8:0:0:1::': '2001:db8:0:0',
    'fe80::1%eth0': 'fe80:0:0:0',
    '::1': '0:0:0:0',
    '': '',
  }
  for (const [address, group] of Object.entries(groups)) t.equal(groupOf(address), group, address)
})

t.test('connections leave files for others', async (t) => {
  t.equal(connectionLimit('dataPlane', 100, 1000), 100)
  t.equal(connectionLimit('dataPlane', 1000, 1000), 650, 'of 1000, fetches have 250')
  t.equal(connectionLimit('controlPlane', 1000, 1000), 40)
  t.equal(connectionLimit('dataPlane', 1000, 1), 1)
  t.equal(connectionLimit('dataPlane', 1000, Infinity), 1000)
  t.ok(connectionLimit('dataPlane', 1_000_000) > 100)
})

t.test('of bodies that have come, many functions of one owner leave another owner as much as they have', async (t) => {
  const { shares } = new ByteBudget(1_000)
  const takenBy = (owner: string, functionName: string): number => {
    for (let taken = 0; ; taken++) if (!shares.tryTake({ owner, functionName }, 1)) return taken
  }
  shares.tryTake({ owner: 'one', functionName: 'one' }, 1)
  let ofMany = 0
  for (let index = 0; index < 50; index++) ofMany += takenBy('many', `many-${index}`)
  t.ok(ofMany <= 500, `${ofMany} of 1000`)
  t.ok(takenBy('one', 'one') >= 150)
})
