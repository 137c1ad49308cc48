import type { Holder } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { BodyParts, BodyTurns, type UnsentBody } from '../src/index.ts'

const KB = 1024
const MB = 1024 * KB

/** A socket that takes nothing until it is told to. */
class Socket {
  /** Names of the bodies whose messages have left, in order. */
  readonly sent: string[] = []
  /** Parts that have left, in order, by the first byte of their body. */
  readonly partsOf: number[] = []
  readonly arriving = new BodyParts(Number.POSITIVE_INFINITY)
  readonly turns = new BodyTurns({
    backlogBytes: () => this.#backlogBytes,
    sendPart: (number, totalBytes, part) => {
      this.#backlogBytes += part.length
      if (part.length > 0) this.partsOf.push(part[0]!)
      this.arriving.add(number, totalBytes, part)
    },
  })
  #backlogBytes = 0

  /** @param mark what all bytes of the body are */
  enter(name: string, { owner, functionName }: Holder, bytes: number, mark = 0): UnsentBody | undefined {
    const whole = Buffer.alloc(bytes, mark)
    return this.turns.enter({ owner, functionName }, whole, (body) => {
      const arrived = typeof body === 'number' ? this.arriving.take(body) : body
      if (typeof body !== 'number') this.#backlogBytes += body.length
      if (!whole.equals(arrived)) throw new Error(`${name} is not what it was`)
      this.sent.push(name)
    })
  }

  enterPart(name: string, holder: Holder, bytes: number): void {
    this.turns.enterPart(holder, Buffer.alloc(bytes), (part) => {
      this.#backlogBytes += part.length
      this.sent.push(name)
    })
  }

  drain(): void {
    this.#backlogBytes = 0
    this.turns.sendOn()
  }

  /** Takes all that is left. */
  drainAll(): void {
    while (this.turns.waiting > 0) this.drain()
  }
}

const of = (functionName: string, owner = functionName): Holder => ({ owner, functionName })

t.test('what is small goes past bodies that wait, which leave one after the other as the socket takes them', async (t) => {
  const socket = new Socket()
  for (const name of ['first', 'second', 'third']) socket.enter(name, of('flood'), MB)
  socket.enter('small', of('other'), 100)
  t.same(socket.sent, ['small'])
  for (let turn = 0; turn < 4; turn++) socket.drain()
  t.same(socket.sent, ['small', 'first'])
  socket.drainAll()
  t.same(socket.sent, ['small', 'first', 'second', 'third'])
  t.equal(socket.arriving.open, 0)
})

t.test('no more is handed to the socket than a part above what keeps it busy', async (t) => {
  const socket = new Socket()
  socket.enter('large', of('a'), 100 * MB)
  t.equal(socket.partsOf.length, 4)
  socket.drain()
  t.equal(socket.partsOf.length, 8)
})

t.test('a body that is not much larger than the rest leaves with its message, if nothing waits', async (t) => {
  const socket = new Socket()
  t.equal(socket.enter('one', of('a'), 200 * KB), undefined)
  t.equal(socket.enter('two', of('a'), 200 * KB), undefined)
  t.same(socket.sent, ['one', 'two'])
  t.ok(socket.enter('three', of('a'), 200 * KB))
  t.same(socket.partsOf, [])
})

t.test('a body of somebody else does not wait for all of a flood, nor for one large body', async (t) => {
  const socket = new Socket()
  for (let count = 0; count < 10; count++) socket.enter('flood', of('flood'), 50 * MB)
  socket.enter('other', of('other'), MB)
  for (let turn = 0; turn < 9; turn++) socket.drain()
  t.same(socket.sent, ['other'])
})

t.test('an owner with twenty functions has the turns of one', async (t) => {
  const socket = new Socket()
  for (let index = 0; index < 20; index++) socket.enter('many', of(`f${index}`, 'many'), 2 * MB, 1)
  socket.enter('one', of('g', 'one'), 2 * MB, 2)
  while (!socket.sent.includes('one')) socket.drain()
  t.ok(socket.partsOf.filter((mark) => mark === 1).length < 50, String(socket.partsOf))
})

t.test('so many bodies have begun at most, so that not all of them wait for the rest at the peer', async (t) => {
  const socket = new Socket()
  for (let index = 0; index < 20; index++) socket.enter('body', of(`f${index}`), 20 * MB)
  let most = 0
  while (socket.turns.waiting > 0) {
    socket.drain()
    most = Math.max(most, socket.arriving.open)
  }
  t.equal(most, 3)
})

t.test('what is dropped while it waits or leaves never comes', async (t) => {
  const socket = new Socket()
  const first = socket.enter('first', of('a'), MB)
  const second = socket.enter('second', of('a'), MB)
  socket.enter('third', of('a'), MB)
  first?.drop()
  first?.drop()
  second?.drop()
  t.equal(socket.arriving.open, 0)
  socket.drainAll()
  second?.drop()
  t.same(socket.sent, ['third'])
})

t.test('what is finished leaves at once', async (t) => {
  const socket = new Socket()
  const first = socket.enter('first', of('a'), MB)
  const second = socket.enter('second', of('a'), MB)
  second?.finish()
  t.same(socket.sent, ['second'])
  first?.finish()
  first?.finish()
  t.same(socket.sent, ['second', 'first'])
  t.equal(socket.turns.waiting, 0)
})

t.test('every body that is not dropped leaves once and as it was, those of one function in order', async () => {
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ functionName: fc.constantFrom('a', 'b', 'c'), owner: fc.constantFrom('x', 'y'), bytes: fc.nat(MB) }),
    },
    fc.constant('drain' as const),
    fc.constantFrom('drop' as const, 'finish' as const),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const socket = new Socket()
      const entered: string[] = []
      const early = new Set<string>()
      const dropped = new Set<string>()
      const unsent: Array<readonly [string, UnsentBody]> = []
      for (const [index, one] of steps.entries()) {
        if (one === 'drain') socket.drain()
        else if (one === 'drop' || one === 'finish') {
          const last = unsent.pop()
          if (last === undefined) continue
          if (one === 'drop' && !socket.sent.includes(last[0])) dropped.add(last[0])
          if (one === 'finish') early.add(last[0])
          last[1][one]()
        } else {
          // Small ones overtake, so the order is that of the large ones.
          const name = `${one.owner}/${one.functionName} ${one.bytes >= 64 * KB ? 'large' : 'small'} ${index}`
          entered.push(name)
          const body = socket.enter(name, one, one.bytes, index)
          if (body !== undefined) unsent.push([name, body])
        }
      }
      socket.drainAll()
      const left = entered.filter((name) => !dropped.has(name))
      const kindOf = (name: string): string => name.slice(0, name.lastIndexOf(' '))
      const inOrder = [...new Set(left.map(kindOf))].every((kind) => {
        const [came, went] = [left, socket.sent].map((names) =>
          names.filter((name) => kindOf(name) === kind && !early.has(name)).join(),
        )
        return came === went
      })
      return inOrder && socket.sent.toSorted().join() === left.toSorted().join() && socket.arriving.open === 0
    }),
    { numRuns: 50 },
  )
})

t.test(
  'parts of streams leave in order within a function, small ones too, and a flood of them holds up nobody else',
  async (t) => {
    const socket = new Socket()
    socket.enterPart('at once', of('flood'), 64 * KB)
    for (let part = 0; part < 10; part++) socket.enterPart(`flood ${part}`, of('flood'), 64 * KB)
    socket.enterPart('flood end', of('flood'), 0)
    t.same(socket.sent, ['at once', 'flood 0', 'flood 1', 'flood 2'], 'no more than keeps the socket busy')
    socket.enterPart('other', of('other'), 10)
    socket.enterPart('other end', of('other'), 0)
    socket.drain()
    t.same(socket.sent.slice(4, 7), ['flood 3', 'other', 'other end'])
    socket.drainAll()
    t.same(
      socket.sent.filter((name) => name.startsWith('flood')),
      [...Array.from({ length: 10 }, (_, part) => `flood ${part}`), 'flood end'],
    )
  },
)
