/** Floods of one function's calls: those of another are read between them. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { RoundRobin, type FinishedInvocation } from '@carpool/core'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { pauseReading } from '../src/hardening/stop-reading.ts'
import { gatewayWith, LIMITS, ok, type Answer, type TestGateway } from './support/gateway.ts'

const CONNECTIONS = 300
const GET = 'GET /flood/ HTTP/1.1\r\nhost: x\r\n\r\n'
const QUIET = 'GET /quiet/ HTTP/1.1\r\nhost: x\r\n\r\n'
const POST = 'POST /flood/ HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello'

type Listening = Pick<TestGateway, 'app' | 'port'> & { readonly order: string[]; untilNoneIsOpen(): Promise<void> }

/** A gateway that answers each request with its body, and counts its connections. */
async function listen(t: Test, maxBodyBytes = LIMITS.maxBodyBytes): Promise<Listening> {
  const order: string[] = []
  const answer: Answer = ({ functionName, request }) => {
    order.push(functionName)
    return ok(`answer ${Buffer.from(request.body).toString()}|`)
  }
  const { app, port } = await gatewayWith(t, answer, { limits: { maxBodyBytes } })
  const open = (): Promise<number> => new Promise((resolve) => app.server.getConnections((_, count) => resolve(count)))
  const untilNoneIsOpen = async (): Promise<void> => {
    while ((await open()) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return { app, port, order, untilNoneIsOpen }
}

async function open(t: Test, port: number): Promise<{ socket: Socket; untilAnswers(count: number): Promise<string> }> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  let received = ''
  let check = (): void => {}
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    check()
  })
  const untilAnswers = (count: number): Promise<string> =>
    new Promise((resolve) => {
      check = () => received.split('|').length > count && resolve(received)
      check()
    })
  return { socket, untilAnswers }
}

/** A client of another function. */
async function openQuiet(t: Test, port: number): Promise<Awaited<ReturnType<typeof open>>> {
  const quiet = await open(t, port)
  quiet.socket.write(QUIET)
  await quiet.untilAnswers(1)
  return quiet
}

t.test('paused connections are all answered, again and again', async (t) => {
  const { port } = await listen(t)
  await openQuiet(t, port)
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  for (let round = 1; round <= 4; round++) {
    for (const { socket } of clients) socket.write(round % 2 === 0 ? POST : GET)
    const answers = await Promise.all(clients.map(({ untilAnswers }) => untilAnswers(round)))
    t.ok(answers.every((text) => text.includes(round % 2 === 0 ? 'answer hello|' : 'answer |')))
  }
  for (const { socket } of clients) socket.write(GET + POST + GET)
  await Promise.all(clients.map(({ untilAnswers }) => untilAnswers(7)))
})

t.test('a request that waits for nothing does not go through the stream of its connection', async (t) => {
  const { app, port } = await listen(t, 10_000)
  const pushed: number[] = []
  app.server.on('connection', (socket: Socket) => {
    const push = socket.push.bind(socket)
    socket.push = (chunk: Buffer | null) => {
      pushed.push(chunk?.length ?? 0)
      return push(chunk)
    }
  })
  const { socket, untilAnswers } = await open(t, port)
  for (let count = 1; count <= 3; count++) {
    socket.write(POST)
    t.match(await untilAnswers(count), /answer hello/)
  }
  t.same(pushed, [], 'without a copy of it')
  socket.write(POST.replace('content-length: 5', 'content-length: 9000').replace('hello', 'h'.repeat(9000)))
  await untilAnswers(4)
  t.ok(pushed.length > 0, 'but more than is parsed at a time does')
})

t.test('small requests that wait count as nothing of the memory for clients', async (t) => {
  const answer = (): FinishedInvocation => {
    for (const endsAtMs = performance.now() + 0.1; performance.now() < endsAtMs; );
    return ok('answer |')
  }
  const { app, port } = await gatewayWith(t, answer, { limits: { maxBufferedBytes: 4096 } })
  let waited = 0
  app.server.on('connection', (socket: Socket) => {
    const unshift = socket.unshift.bind(socket)
    socket.unshift = (chunk: Buffer) => {
      waited++
      return unshift(chunk)
    }
  })
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  for (const { socket } of clients) socket.write(GET)
  const answers = await Promise.all(clients.map(async ({ untilAnswers }) => untilAnswers(1)))
  t.ok(answers.every((text) => text.startsWith('HTTP/1.1 200 ')))
  t.ok(waited > 10, `${waited} waited`)
})

t.test('connections are read where Node.js has no buffer for all of them', async (t) => {
  const { app, port } = await listen(t)
  app.server.prependListener('connection', (socket: Socket & { _handle?: { useUserBuffer?: unknown } }) => {
    socket._handle!.useUserBuffer = undefined
  })
  const { socket, untilAnswers } = await open(t, port)
  for (let count = 1; count <= 3; count++) {
    socket.write(POST)
    t.match(await untilAnswers(count), /answer hello/)
  }
})

t.test('a call of another function does not come last', async (t) => {
  const { port, order } = await listen(t)
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  const quiet = await openQuiet(t, port)
  order.length = 0
  for (const { socket } of clients) socket.write(GET)
  quiet.socket.write(QUIET)
  await Promise.all([quiet.untilAnswers(2), ...clients.map(({ untilAnswers }) => untilAnswers(1))])
  t.equal(order.length, CONNECTIONS + 1)
  t.ok(order.indexOf('quiet') < CONNECTIONS)
})

t.test('a call on a new connection does not come behind those of all connections that were new before it', async (t) => {
  const order: string[] = []
  const { port } = await gatewayWith(t, ({ functionName }) => {
    order.push(functionName)
    for (const endsAtMs = performance.now() + 3; performance.now() < endsAtMs; );
    return ok('answer |')
  })
  const begin = (request: string): Promise<unknown> => {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(request)
    return once(socket, 'data')
  }
  const floods = Array.from({ length: 100 }, () => begin(GET))
  await begin(QUIET)
  t.ok(order.indexOf('quiet') < 50, `${order.indexOf('quiet')} came before it`)
  await Promise.all(floods)
})

t.test(
  'whole and in order: large bodies and answers of clients that take theirs late, on connections with several requests',
  async (t) => {
    const large = 'y'.repeat(200_000)
    const { port, faults } = await gatewayWith(
      t,
      ({ functionName, request }) => ok(functionName === 'large' ? large : `got ${Buffer.from(request.body).length} `),
      { limits: { maxBodyBytes: 1_000_000 } },
    )
    const bodies = [30_000, 5000, 20_000]
    const requests = bodies.map(
      (bytes) =>
        `GET /large/ HTTP/1.1\r\nhost: x\r\n\r\nPOST /small/ HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes}\r\n\r\n${'z'.repeat(bytes)}`,
    )
    const clients = await Promise.all(Array.from({ length: 40 }, () => open(t, port)))
    for (const { socket } of clients) socket.pause().write(requests.join(''))
    const texts = clients.map(async ({ socket }) => {
      let received = ''
      socket.on('data', (text: string) => (received += text))
      await new Promise((resolve) => setImmediate(resolve))
      socket.resume()
      while (received.split('got ').length <= bodies.length) await once(socket, 'data')
      return received
    })
    for (const received of await Promise.all(texts)) {
      t.same(
        [...received.matchAll(/got (\d+) /g)].map(([, bytes]) => Number(bytes)),
        bodies,
      )
      t.equal(received.split(large).length, bodies.length + 1)
    }
    t.same(faults, [])
  },
)

t.test('a request whose body breaks in what was read with its head calls nothing, also beside others', async (t) => {
  const { port, order } = await listen(t)
  const clients = await Promise.all(Array.from({ length: 30 }, () => open(t, port)))
  const broken = `POST /broken/ HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(40_000)}`
  const answers = clients.map(async ({ socket }) => {
    socket.write(broken)
    return String((await once(socket, 'data'))[0])
  })
  for (const answer of await Promise.all(answers)) t.match(answer, /^HTTP\/1\.1 400 /)
  t.same(order, [])
})

t.test('clients that leave while they are paused are gone', async (t) => {
  const { port, untilNoneIsOpen } = await listen(t)
  const quiet = await openQuiet(t, port)
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  for (const { socket } of clients) socket.write(GET)
  for (const { socket } of [...clients, quiet]) socket.destroy()
  await untilNoneIsOpen()
  t.pass()
})

t.test('a pause holds that comes before Node.js has said that it resumed', async (t) => {
  const { app, port } = await gatewayWith(t, () => ok('answer |'))
  const served = new Promise<Socket>((resolve) =>
    app.server.on('connection', (socket) => {
      socket.on('resume', () => pauseReading(socket))
      pauseReading(socket)
      resolve(socket)
    }),
  )
  const { socket } = await open(t, port)
  socket.write(GET)
  const { bytesRead } = await served
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.match([bytesRead, (await served).bytesRead], [0, 0])
})

/** A round robin on a clock and an event loop that the test turns; each request takes `costMs`. */
function roundRobinOf(costMs: number) {
  const state = { nowMs: 0, turns: [] as Array<() => void>, begun: [] as string[] }
  const roundRobin = new RoundRobin({
    turnMs: 2,
    clock: () => state.nowMs,
    nextTurn: (callback) => void state.turns.push(callback),
  })
  const enter = (name: string): void =>
    roundRobin.enter({ owner: 'o', functionName: name }, () => {
      state.nowMs += costMs
      state.begun.push(name)
    })
  const turn = (): void => {
    for (const callback of state.turns.splice(0)) callback()
  }
  return { state, enter, turn }
}

t.test('what fits into a turn is begun at once', async (t) => {
  const { state, enter } = roundRobinOf(0.5)
  for (let count = 0; count < 4; count++) enter('a')
  t.equal(state.begun.length, 4)
  enter('a')
  t.equal(state.begun.length, 4, 'the fifth waits')
})

t.test('a call behind many of another function comes in the next turn', async (t) => {
  const { state, enter, turn } = roundRobinOf(0.5)
  for (let count = 0; count < 1_000; count++) enter('flood')
  enter('quiet')
  t.notOk(state.begun.includes('quiet'))
  turn()
  t.ok(state.begun.includes('quiet'))
  t.ok(state.begun.length < 20)
})

t.test('everything is begun once, in order within its function', async () => {
  const name = fc.constantFrom('a', 'b', 'c')
  fc.assert(
    fc.property(fc.array(fc.oneof(name, fc.constant('turn')), { size: 'max', maxLength: 300 }), (steps) => {
      const state = { nowMs: 0, turns: [] as Array<() => void>, begun: [] as Array<readonly [string, number]> }
      const roundRobin = new RoundRobin({
        turnMs: 2,
        clock: () => state.nowMs,
        nextTurn: (callback) => void state.turns.push(callback),
      })
      let entered = 0
      const turn = (): void => {
        for (const callback of state.turns.splice(0)) callback()
      }
      for (const step of steps) {
        if (step === 'turn') {
          turn()
          continue
        }
        const number = entered++
        roundRobin.enter({ owner: 'o', functionName: step }, () => {
          state.nowMs++
          state.begun.push([step, number])
        })
      }
      while (state.turns.length > 0) turn()
      const isInOrder = ['a', 'b', 'c'].every((one) => {
        const numbers = state.begun.filter(([name]) => name === one).map(([, number]) => number)
        return numbers.every((number, index) => index === 0 || numbers[index - 1]! < number)
      })
      return state.begun.length === entered && isInOrder
    }),
  )
})

t.test('connections of one owner are resumed no more often than those of another, however many functions it has', async (t) => {
  const state = { nowMs: 0, turns: [] as Array<() => void>, begun: [] as string[] }
  const roundRobin = new RoundRobin({
    turnMs: 2,
    clock: () => state.nowMs,
    nextTurn: (callback) => void state.turns.push(callback),
  })
  const enter = (owner: string, functionName: string): void =>
    roundRobin.enter({ owner, functionName }, () => {
      state.nowMs++
      state.begun.push(owner)
    })
  for (let count = 0; count < 10; count++) {
    for (let index = 0; index < 20; index++) enter('many', `many-${index}`)
    for (let one = 0; one < 20; one++) enter('one', 'one')
  }
  while (state.begun.length < 102) for (const callback of state.turns.splice(0)) callback()
  const ofOne = state.begun.slice(2).filter((owner) => owner === 'one').length
  t.ok(ofOne >= 49, `${ofOne} of ${state.begun.length}`)
})
