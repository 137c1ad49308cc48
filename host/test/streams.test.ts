/** Bodies that flow through a real isolate, both ways, and how they end. */
import { STREAM_WINDOW_BYTES, type InvocationUsage } from '@carpool/core'
import { NO_BODY, unpackUsage, type StreamJoin, type ToServer } from '@carpool/wire'
import t from 'tap'
import { inProcessHost, type InProcessHost, type Sent } from './support/in-process-host.ts'

const PART = 'x'.repeat(64 * 1024)

const HANDLER = `
  const { pathname } = new URL(request.url)
  const waitFor = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const length = async (stream) => { let sum = 0; for await (const chunk of stream) sum += chunk.length; return sum }
  switch (pathname) {
    case '/length': return new Response(String(await length(request.body)))
    case '/text': return new Response(String((await request.text()).length))
    case '/caught': return new Response(await request.text().catch((error) => String(error)))
    case '/upper': return new Response(request.body.pipeThrough(new TransformStream({
      transform: (chunk, to) => to.enqueue(chunk.map((byte) => byte - 32)),
    })))
    case '/unread': return new Response('not read')
    case '/waits': await waitFor(50); return new Response(String(await length(request.body)))
    case '/never': return new Response(new ReadableStream({ cancel() { console.log('canceled') } }))
    case '/fails': return new Response(new ReadableStream({
      async start(to) { to.enqueue(new Uint8Array(3)); await waitFor(1); to.error(new Error('dry')) },
    }))
    case '/ticks': return new Response(new ReadableStream({
      async pull(to) { await waitFor(5); to.enqueue(new TextEncoder().encode('tick ')) },
    }))
    case '/burns': return new Response(new ReadableStream({
      async pull(to) { await waitFor(0); for (const end = Date.now() + 20; Date.now() < end;); to.enqueue(new Uint8Array(1)) },
    }))
    case '/out': {
      const response = await fetch('http://up/', { method: 'POST', duplex: 'half', body: request.body.pipeThrough(new TransformStream()) })
      return new Response(String(await length(response.body)))
    }
    case '/echo': return new Response(request.body)
    case '/proxy': return fetch('http://up/', { method: request.method, duplex: 'half', body: request.body })
    case '/ignores': { const { status } = await fetch('http://up/'); return new Response(String(status)) }
    case '/leaks': await fetch('http://up/'); await waitFor(1); throw new Error('no')
    case '/spins': for (;;);
  }
  return new Response('?')`

const HEAD = { ok: true, status: 200, statusText: 'OK', headers: [], url: 'http://up/', redirected: false }

/** One for all: each takes room for its scripts for good. */
let host: InProcessHost | undefined
let rev = ''
let revisions = 0

async function hostWith(limits: Parameters<InProcessHost['load']>[2] = {}): Promise<InProcessHost> {
  host ??= await inProcessHost()
  host.sent.length = 0
  rev = `rev${++revisions}`
  host.load(rev, HANDLER, limits)
  return host
}

function usageOf(message: ToServer): InvocationUsage {
  return unpackUsage((message as unknown as { usage: never }).usage)
}

/** Sends parts as fast as they are taken, as long as they are. */
async function send(host: InProcessHost, invocation: number, parts: number): Promise<void> {
  const isUnwanted = (): boolean =>
    host.sent.some(({ message }) => message.type === 'stream-abort' && message.side === 'received')
  for (let sent = 0; sent < parts && !isUnwanted(); sent++) {
    const hasRoom = (): boolean => sent * PART.length - host.creditedOf('call', invocation) <= STREAM_WINDOW_BYTES - PART.length
    await host.until(() => hasRoom() || isUnwanted())
    host.stream('call', invocation, PART, sent === parts - 1)
  }
}

t.test('parts of any size that come together, all values of bytes among them, are what the function changes', async (t) => {
  const host = await hostWith()
  const invocation = host.invoke(rev, '/upper', '', true)
  const bytes = Buffer.from(Uint8Array.from({ length: 192 * 1024 }, (_, index) => index * 31))
  let start = 0
  // All of them wait until the isolate is made.
  for (const length of [10, 40_000, 50_000, 3, 5, 64 * 1024, bytes.length - 90_018 - 64 * 1024]) {
    const end = start + length
    host.stream('call', invocation, bytes.toString('latin1', start, end), end === bytes.length)
    start = end
  }
  t.match(await host.endOf(invocation), { message: { type: 'answer-end' } })
  const answer = Buffer.concat(host.partsOf('call', invocation).map((part) => part.bytes))
  t.equal(answer.length, bytes.length)
  t.ok(answer.every((byte, index) => byte === ((bytes[index]! - 32) & 255)))
})

t.test('a request comes part by part, also while its isolate is made', async (t) => {
  const host = await hostWith()
  for (const path of ['/length', '/text']) {
    const call = host.invoke(rev, path, '', true)
    await send(host, call, 40)
    t.equal(await host.answerOf(call), String(40 * PART.length))
  }
})

t.test('what is not read stays with the sender', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/waits', '', true)
  for (let part = 0; part < 4; part++) host.stream('call', call, PART)
  await host.sentOf('waiting')
  t.equal(host.creditedOf('call', call), 0)
  await host.until(() => host.creditedOf('call', call) === STREAM_WINDOW_BYTES)
  host.stream('call', call, '', true)
  t.equal(await host.answerOf(call), String(STREAM_WINDOW_BYTES))
})

t.test('a body is collected up to its limit', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/caught', '', true)
  await send(host, call, 200)
  t.match(await host.answerOf(call), /^TypeError: The request body has at least \d+ bytes; the limit is 8388608\.$/)
  t.ok(host.sent.some(({ message }) => message.type === 'stream-abort' && message.side === 'received'))
})

t.test('a request and its answer flow at the same time', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/upper', '', true)
  host.stream('call', call, 'abc')
  await host.until(() => host.bytesOf('call', call) === 3)
  host.stream('call', call, 'def', true)
  t.match((await host.endOf(call)).message, { type: 'answer-end' })
  t.equal(
    host
      .partsOf('call', call)
      .map(({ body }) => body)
      .join(''),
    'ABCDEF',
  )
  t.match(host.sent.find(({ message }) => message.type === 'answer-head')?.text, '"status":200')
})

t.test('an answer need not read its request', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/unread', '', true)
  host.stream('call', call, PART)
  t.equal(await host.answerOf(call), 'not read')
})

t.test('an answer that breaks off is a failure, with what it used', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/fails')
  const { message } = await host.endOf(call)
  t.match(message, { type: 'failed', outcome: 'exception' })
  t.equal(host.bytesOf('call', call), 3)
  t.ok(usageOf(message).cpuUs > 0)
})

t.test('an answer of which no byte comes for long ends at the idle limit, one that ticks does not', async (t) => {
  const host = await hostWith({ idleMs: 200, streamMs: 1_000 })
  const [never, ticks] = [host.invoke(rev, '/never'), host.invoke(rev, '/ticks')]
  const outcome = 'timeout'
  t.match((await host.endOf(never)).message, { outcome, detail: 'No byte came or went within the idle limit of 200 ms.' })
  t.match((await host.endOf(ticks)).message, { outcome, detail: 'The answer took more than the stream limit of 1000 ms.' })
  t.ok(host.bytesOf('call', ticks) > 5)
  t.ok(host.sent.some(({ text }) => text === 'canceled'))
})

t.test('the CPU limit counts to the end of an answer', async (t) => {
  const host = await hostWith({ cpuMs: 100, idleMs: 0, streamMs: 0 })
  const call = host.invoke(rev, '/burns')
  t.match((await host.endOf(call)).message, { type: 'failed', outcome: 'cpu-exceeded' })
})

t.test('a call that streams does not begin again when its isolate is lost', async (t) => {
  const host = await hostWith({ cpuMs: 100, idleMs: 0, streamMs: 0 })
  const [never, upload] = [host.invoke(rev, '/never'), host.invoke(rev, '/length', '', true)]
  await host.until(() => host.sent.some(({ message }) => message.type === 'answer-head'))
  const spins = host.invoke(rev, '/spins')
  for (const call of [never, upload]) t.match((await host.endOf(call)).message, { type: 'failed', outcome: 'isolate-lost' })
  t.match((await host.endOf(spins)).message, { outcome: 'cpu-exceeded' })
})

t.test('the bodies of a fetch flow both ways', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/out', '', true)
  host.stream('call', call, 'abc')
  const { message } = await host.sentOf('fetch')
  t.match(message, { streams: true })
  const { fetch } = message as { fetch: number } & typeof message
  await host.until(() => host.bytesOf('fetch', fetch) === 3)
  host.host.receive({ type: 'fetch-head', fetch }, JSON.stringify(HEAD), NO_BODY)
  host.stream('call', call, 'def', true)
  await host.until(() =>
    host.partsOf('fetch', fetch).some(({ message: part }) => part.type === 'stream-data' && part.end === true),
  )
  host.stream('fetch', fetch, 'ghijk')
  host.host.receive({ type: 'fetch-settled', fetch, bytesOut: 6, bytesIn: 5 }, JSON.stringify(HEAD), NO_BODY)
  t.equal(await host.answerOf(call), '5')
})

t.test('the response of a fetch that nobody reads ends with its call', async (t) => {
  const host = await hostWith()
  for (const path of ['/ignores', '/leaks']) {
    const call = host.invoke(rev, path)
    const { message } = await host.sentOf('fetch')
    const { fetch } = message as { fetch: number } & typeof message
    host.host.receive({ type: 'fetch-head', fetch }, JSON.stringify(HEAD), NO_BODY)
    await host.endOf(call)
    await host.until(() => host.sent.some(({ message: stop }) => stop.type === 'fetch-stop' && stop.fetch === fetch))
    t.pass(path)
  }
})

/** Sends parts to a call, and takes what comes of them. */
async function flow(host: InProcessHost, call: number, parts: number): Promise<void> {
  let [sent, taken] = [0, 0]
  while (taken < parts * PART.length) {
    while (sent < parts && sent * PART.length - host.creditedOf('call', call) <= STREAM_WINDOW_BYTES - PART.length) {
      host.stream('call', call, PART, ++sent === parts)
    }
    await host.until(() => host.bytesOf('call', call) > taken)
    const came = host.bytesOf('call', call)
    t.ok(came - taken <= STREAM_WINDOW_BYTES)
    host.credit('call', call, came - taken)
    taken = came
  }
}

t.test('a body comes back whole through the isolate', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/upper', '', true)
  await flow(host, call, 100)
  t.match((await host.endOf(call)).message, { type: 'answer-end' })
  const body = host.partsOf('call', call).map((part) => part.body)
  t.equal(body.join(''), PART.toUpperCase().repeat(100))
})

/** What the host asks to be joined, so far. */
function joinsOf(host: InProcessHost): StreamJoin[] {
  return host.sent.map(({ message }) => message).filter((message) => message.type === 'stream-join')
}

t.test('a body that is passed on as it is goes on without the host when all that came has gone out', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/echo', '', true)
  host.stream('call', call, 'abc')
  await host.until(() => joinsOf(host).length === 1)
  const join = { type: 'stream-join', of: 'call', number: call, to: { of: 'call', number: call } } as const
  t.same(joinsOf(host), [{ ...join, cameBytes: 3 }])
  t.equal(host.bytesOf('call', call), 3, 'what came goes out before')
  // The server has sent more meanwhile.
  for (let part = 0; part < 3; part++) host.stream('call', call, PART)
  await host.until(() => joinsOf(host).length === 2)
  t.same(joinsOf(host)[1], { ...join, cameBytes: 3 + 3 * PART.length })
  const body = host.partsOf('call', call).map((part) => part.body)
  t.equal(body.join(''), `abc${PART.repeat(3)}`)
  t.equal(host.creditedOf('call', call), 0, 'credit is for the server to give')
  host.moved('call', call, 1_000_000)
  host.stream('call', call, '', true)
  t.match((await host.endOf(call)).message, { type: 'answer-end' })
})

t.test('what is passed on waits for a window before it is joined', async (t) => {
  const host = await hostWith()
  const call = host.invoke(rev, '/echo', '', true)
  for (let part = 0; part < 4; part++) host.stream('call', call, PART)
  await host.until(() => host.bytesOf('call', call) === STREAM_WINDOW_BYTES)
  // Behind all that the guest has said.
  await host.answerOf(host.invoke(rev, '/'))
  t.same(joinsOf(host), [])
  host.credit('call', call, 1)
  t.match(joinsOf(host), [{ cameBytes: STREAM_WINDOW_BYTES }])
  host.cancel(call)
  await host.endOf(call)
})

t.test('what moves past the host is not idle, and ends when it no longer moves', async (t) => {
  const host = await hostWith({ idleMs: 100 })
  const call = host.invoke(rev, '/echo', '', true)
  host.stream('call', call, 'abc')
  await host.until(() => joinsOf(host).length === 1)
  const movesFromMs = performance.now()
  const moves = setInterval(() => host.moved('call', call, 1), 20)
  const ended = host.endOf(call)
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 2_000))])
  clearInterval(moves)
  const { message, atMs } = await ended
  t.ok(atMs - movesFromMs >= 2_000)
  t.match(message, { outcome: 'timeout', detail: 'No byte came or went within the idle limit of 100 ms.' })
})

t.test('a proxy passes both bodies on, and either side may leave', async (t) => {
  const host = await hostWith()
  for (const end of ['whole', 'client', 'upstream'] as const) {
    host.sent.length = 0
    const call = host.invoke(rev, '/proxy', '', true)
    const { message } = await host.sentOf('fetch')
    const { fetch } = message as { fetch: number } & typeof message
    await host.until(() => joinsOf(host).length === 1)
    const [ofCall, ofFetch] = [{ of: 'call', number: call } as const, { of: 'fetch', number: fetch } as const]
    t.match(joinsOf(host), [{ ...ofCall, to: ofFetch, cameBytes: 0 }], 'behind the fetch')
    host.moved('call', call, 6)
    host.stream('call', call, '', true)
    await host.until(() =>
      host.partsOf('fetch', fetch).some(({ message: part }) => part.type === 'stream-data' && part.end === true),
    )
    host.host.receive({ type: 'fetch-head', fetch }, JSON.stringify(HEAD), NO_BODY)
    host.stream('fetch', fetch, 'ghi')
    await host.until(() => joinsOf(host).at(-1)!.cameBytes === 3)
    t.match(joinsOf(host).at(-1), { ...ofFetch, to: ofCall })
    t.equal(host.bytesOf('call', call), 3)
    host.moved('fetch', fetch, 4 * PART.length)
    const bytes = { bytesOut: 6, bytesIn: 3 + 4 * PART.length }
    const settle = (result: object): void =>
      host.host.receive({ type: 'fetch-settled', fetch, ...bytes }, JSON.stringify(result), NO_BODY)
    if (end === 'client') {
      host.cancel(call)
      t.match((await host.endOf(call)).message, { outcome: 'canceled' })
      const isStop = ({ message: stop }: Sent): boolean => stop.type === 'fetch-stop' && stop.fetch === fetch
      await host.until(() => host.sent.some(isStop))
      t.match(host.sent.find(isStop)?.message, bytes, 'what it has counted')
    } else if (end === 'upstream') {
      settle({ ok: false, message: 'It broke off.' })
      t.match((await host.endOf(call)).message, { type: 'failed', outcome: 'exception', stack: /It broke off/ })
    } else {
      settle(HEAD)
      const { message: last } = await host.endOf(call)
      t.match(last, { type: 'answer-end' })
      t.match(usageOf(last), { egressBytesOut: bytes.bytesOut, egressBytesIn: bytes.bytesIn })
    }
  }
})
