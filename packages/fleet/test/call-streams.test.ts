/** Calls that stream, on the connection with a host that may send anything. */
import type { InvocationResult } from '@carpool/core'
import t, { type Test } from 'tap'
import { Body, KIB, Rig, USAGE, WINDOW } from './support/rig.ts'

function bodyOf(result: InvocationResult | undefined): string | undefined {
  return result?.outcome === 'ok' ? Buffer.from(result.response.body).toString() : undefined
}

t.test('the body of a request goes as far as its window, and on with credit', async (t) => {
  const rig = new Rig()
  const body = new Body(WINDOW + 100)
  rig.send({}, body)
  const part = `stream-data {"number":1} ${64 * KIB}`
  await rig.read()
  t.same(rig.told, ['invoke {"streams":true,"invocation":1}', part, part, part, part])
  t.notOk(body.taker?.isWanted, 'nobody waits for the client')
  rig.told.length = 0
  rig.host.send({ type: 'stream-credit', of: 'call', number: 1, bytes: 60 })
  await rig.until(() => rig.told.length === 1)
  rig.host.send({ type: 'stream-credit', of: 'call', number: 1, bytes: 1e15 })
  rig.host.send({ type: 'stream-credit', of: 'call', number: 1, bytes: -5 })
  await rig.read()
  t.same(rig.told, ['stream-data {"number":1} 60', 'stream-data {"number":1,"end":true} 40'])
})

t.test('credit that no bytes stand behind gives no more than a window', async (t) => {
  const rig = new Rig()
  const body = new Body(0)
  body.isOpen = true
  rig.send({}, body)
  for (let count = 0; count < 10; count++) rig.host.send({ type: 'stream-credit', of: 'call', number: 1, bytes: 1e12 })
  await rig.read()
  const more = new Body(3 * WINDOW)
  Object.assign(body, { take: (most: number) => more.take(most) })
  body.taker?.readable()
  t.equal(more.takenBytes, WINDOW)
})

t.test('a body that breaks off is told, and one that the function does not want is stopped', async (t) => {
  const rig = new Rig()
  const body = new Body(10)
  body.isOpen = true
  rig.send({}, body)
  body.why = 'The client is gone.'
  body.taker?.readable()
  await rig.read()
  t.same(rig.told.slice(1), ['stream-data {"number":1} 10', 'stream-abort {"number":1,"side":"sent"} The client is gone.'])
  const unwanted = new Body(10)
  unwanted.isOpen = true
  rig.send({}, unwanted)
  rig.host.send({ type: 'stream-abort', of: 'call', number: 2, side: 'received' })
  await rig.read()
  t.ok(unwanted.isStopped)
})

t.test('an answer streams to who wants that, and its call ends with it', async (t) => {
  const rig = new Rig()
  const { call, streamed } = rig.stream()
  rig.begin(1, [['x-a', 'b']], 201)
  rig.data(1, 'one')
  await rig.read()
  t.match(streamed, { head: { status: 201, headers: [['x-a', 'b']] }, text: 'one' })
  streamed.credit(3)
  rig.data(1, 'two', true)
  rig.end(1)
  await rig.until(() => rig.results.length === 1)
  t.match(rig.results[0], { outcome: 'ok', usage: { cpuUs: 7 }, response: { status: 201 } })
  t.match([streamed.text, call.begun], ['onetwo', { status: 201, bytes: 6 }])
  t.same(rig.told.slice(1), ['stream-credit {"number":1,"bytes":3}'])
})

t.test('an answer is collected for who wants it whole, up to the limit', async (t) => {
  const rig = new Rig()
  const call = rig.send()
  rig.begin(1)
  rig.data(1, 'a'.repeat(600))
  rig.data(1, 'b'.repeat(400))
  await rig.read()
  rig.end(1)
  await rig.until(() => rig.results.length === 1)
  t.match(rig.results[0], { outcome: 'ok', response: { status: 200 } })
  t.equal(bodyOf(rig.results[0]), 'a'.repeat(600) + 'b'.repeat(400))
  t.equal(call.begun?.status, undefined)
  t.same(rig.told.slice(1), ['stream-credit {"number":1,"bytes":600}', 'stream-credit {"number":1,"bytes":400}'])
  rig.send()
  rig.begin(2)
  rig.data(2, 'a'.repeat(1001))
  await rig.until(() => rig.told.at(-1)!.startsWith('cancel'))
  rig.host.send({ type: 'failed', invocation: 2, start: 'warm', usage: USAGE, outcome: 'canceled', detail: '' })
  await rig.until(() => rig.results.length === 2)
  t.match(rig.results[1], { outcome: 'invalid-response', detail: /at least 1001 bytes; the limit is 1000/, usage: { cpuUs: 7 } })
})

t.test('nothing of a body is wanted where an answer has none', async (t) => {
  const rig = new Rig()
  const { streamed } = rig.stream({ method: 'HEAD' })
  rig.begin(1, [['content-length', '5']])
  rig.data(1, 'on its way')
  await rig.read()
  t.same(rig.told.slice(1), ['stream-abort {"number":1,"side":"received"}'])
  rig.end(1)
  await rig.until(() => rig.results.length === 1)
  t.match(rig.results[0], { outcome: 'ok', response: { status: 200 } })
  t.equal(bodyOf(rig.results[0]), '')
  t.equal(streamed.head, undefined, 'the head leaves with the end')
})

async function failsWith(t: Test, detail: RegExp, says: (rig: Rig) => void): Promise<void> {
  const rig = new Rig()
  rig.stream()
  says(rig)
  await rig.read()
  rig.end(1)
  await rig.until(() => rig.results.length === 1)
  t.match(rig.results[0], { outcome: 'invalid-response', detail })
}

t.test('a body that is not as long as its content-length says is no valid response', async (t) => {
  await failsWith(t, /more than the 5 bytes/, (rig) => {
    rig.begin(1, [['content-length', '5']])
    rig.data(1, '123456')
  })
  await failsWith(t, /has 4 bytes, and its content-length says 5/, (rig) => {
    rig.begin(1, [['content-length', '5']])
    rig.data(1, '1234')
  })
})

t.test('a head that is not valid ends its call', async (t) => {
  await failsWith(t, /status/, (rig) => rig.begin(1, [], 999))
  await failsWith(t, /not valid/, (rig) => rig.begin(1, [['a', 'b\r\nc']]))
})

t.test('what does not belong to a stream is ignored', async (t) => {
  const rig = new Rig()
  const { streamed } = rig.stream()
  rig.data(1, 'before its head')
  rig.end(1)
  rig.data(99, 'of nobody')
  rig.begin(99)
  rig.host.send({ type: 'stream-credit', of: 'call', number: 99, bytes: 5 })
  rig.host.send({ type: 'stream-abort', of: 'call', number: 1, side: 'received' })
  rig.begin(1)
  rig.begin(1, [], 201)
  rig.host.send({ type: 'answer', invocation: 1, start: 'warm', usage: USAGE }, '{"status":202,"headers":[]}')
  rig.host.send({ type: 'unbegun', invocation: 1 })
  rig.data(1, 'fine', true)
  rig.data(1, 'behind the end')
  await rig.read()
  t.same([rig.results.length, rig.closed], [0, undefined])
  rig.end(1)
  rig.end(1)
  await rig.read()
  t.match(rig.results, [{ outcome: 'ok', response: { status: 200 } }])
  t.match(streamed, { text: 'fine', head: { status: 200 } })
})

t.test('a host that sends more than the window, or too much at once, breaks the protocol', async (t) => {
  const part = Buffer.alloc(64 * KIB)
  for (const parts of [[part, part, part, part, Buffer.alloc(1)], [Buffer.alloc(64 * KIB + 1)]]) {
    const rig = new Rig()
    const { streamed } = rig.stream()
    rig.begin(1)
    for (const one of parts.slice(0, -1)) rig.data(1, one)
    await rig.read()
    t.equal(rig.closed, undefined)
    rig.data(1, parts.at(-1)!)
    await rig.until(() => rig.closed !== undefined)
    t.match(rig.closed, /broke the protocol/)
    t.match(rig.results, [{ outcome: 'host-lost' }])
    t.ok(streamed.text.length <= WINDOW)
  }
})

t.test('a call whose head has come is overdue by the limit of its stream', async (t) => {
  for (const [streamMs, isOverdue] of [
    [0, [true, false, false]],
    [60_000, [true, false, true]],
  ] as const) {
    const rig = new Rig()
    rig.host.send({ type: 'ready' })
    rig.stream({ limits: { wallMs: 1_000, streamMs } })
    const looks = [rig.connection.isOverdue(performance.now() + 10_000)]
    rig.begin(1)
    await rig.read()
    looks.push(rig.connection.isOverdue(performance.now() + 10_000), rig.connection.isOverdue(performance.now() + 70_000))
    t.same(looks, isOverdue)
  }
})

t.test('a call whose body is on its way does not begin in another host', async (t) => {
  const rig = new Rig()
  const body = new Body(10)
  body.isOpen = true
  rig.send({ method: 'POST' }, body)
  rig.connection.takeBackAfter(0)
  t.match(rig.results, [{ outcome: 'host-lost', detail: /body was already on its way/ }])
  t.ok(body.isStopped)
})

t.test('an answer that streams is counted from its head to its end, once, also if its host is lost', async (t) => {
  const rig = new Rig()
  rig.stream()
  rig.begin(1)
  rig.begin(1)
  rig.stream()
  rig.begin(2)
  await rig.read()
  t.same(rig.changes, ['f answer 1', 'f answer 1'])
  rig.data(1, '', true)
  rig.end(1)
  rig.end(1)
  await rig.read()
  t.same(rig.changes.slice(2), ['f answer -1'])
  rig.stream()
  rig.connection.lose(() => undefined)
  await rig.until(() => rig.results.length === 3)
  t.same(rig.changes.slice(3), ['f answer -1'], 'and one that never began is not')
})

t.test('so is a WebSocket', async (t) => {
  const rig = new Rig()
  const { call } = rig.stream()
  call.acceptWebSocket = () => ({ send: () => {}, close: () => {}, credited: () => {} })
  rig.begin(1, [], 101)
  await rig.read()
  t.same(rig.changes, ['f websocket 1'])
  rig.end(1)
  await rig.read()
  t.same(rig.changes, ['f websocket 1', 'f websocket -1'])
})
