/** Streams that a host asks to have joined: what it asks for may be anything. */
import t from 'tap'
import type { StreamSource, StreamTarget } from '../src/pool/joined-streams.ts'
import { Body, KIB, Rig, WINDOW } from './support/rig.ts'

/** A call whose body has no end yet, and an answer that has begun. */
function openCall(rig: Rig, bytes: number, functionName?: string) {
  const body = new Body(bytes)
  body.isOpen = true
  const { call, streamed } = rig.stream({ method: 'POST' }, body, functionName)
  rig.begin(call.number)
  return { body, call, streamed, number: call.number }
}

/** The body of a call has so many bytes more. */
function more(body: Body, bytes: number): void {
  body.totalBytes += bytes
  body.taker?.readable()
}

function withoutMoves(told: readonly string[]): string[] {
  return told.filter((one) => !one.startsWith('stream-moved') && !one.startsWith('invoke'))
}

t.test('a body goes to the answer past the host, as far as its caller takes it, and its end to the host', async (t) => {
  const rig = new Rig()
  const { body, call, streamed, number } = openCall(rig, 100)
  rig.data(number, 'u'.repeat(100))
  rig.join(number, number, 100)
  await rig.read()
  more(body, 2 * WINDOW)
  t.equal(streamed.text.length, 100 + 192 * KIB, 'what the host sent before counts, and no piece of a part goes')
  t.notOk(body.taker?.isWanted, 'nobody waits for the client')
  streamed.credit(70 * KIB)
  t.equal(streamed.text.length, 100 + 320 * KIB)
  for (let credit = 0; credit < 4; credit++) streamed.credit(WINDOW / 2)
  t.equal(streamed.text.length, 100 + 2 * WINDOW)
  await rig.until(() => rig.told.some((one) => one.startsWith('stream-moved')))
  t.same(
    rig.told.filter((one) => one.startsWith('stream-moved')),
    [`stream-moved {"number":1,"bytes":${2 * WINDOW}}`],
    'all of a while in one message',
  )
  body.isOpen = false
  body.taker?.readable()
  rig.end(number)
  await rig.until(() => rig.results.length === 1)
  t.same(withoutMoves(rig.told), ['stream-data {"number":1} 100', 'stream-data {"number":1,"end":true}'], 'and no credit')
  t.match([rig.results, call.begun, body.takenBytes], [[{ outcome: 'ok' }], { bytes: 100 + 2 * WINDOW }, 100 + 2 * WINDOW])
})

t.test('a client that takes what waits here keeps a stream from being idle, though its source is silent', async (t) => {
  const rig = new Rig()
  const { body, streamed, number } = openCall(rig, 100)
  rig.data(number, 'u'.repeat(100))
  rig.join(number, number, 100)
  await rig.read()
  const moves = (): string[] => rig.told.filter((one) => one.startsWith('stream-moved'))
  more(body, 64 * KIB)
  await rig.until(() => moves().length === 1)
  streamed.credit(10)
  await rig.until(() => moves().length === 2)
  t.same(moves(), [`stream-moved {"number":1,"bytes":${64 * KIB}}`, 'stream-moved {"number":1,"bytes":0}'])
})

t.test('what has left for the host comes back from there before anything passes it by', async (t) => {
  const rig = new Rig()
  const { body, streamed, number } = openCall(rig, 100)
  rig.data(number, 'a'.repeat(100))
  more(body, 50)
  rig.join(number, number, 100)
  await rig.read()
  more(body, 1)
  t.equal(streamed.text, 'a'.repeat(100), 'not yet')
  rig.data(number, 'b'.repeat(51))
  rig.join(number, number, 151)
  await rig.read()
  more(body, 2)
  t.equal(streamed.text, `${'a'.repeat(100)}${'b'.repeat(51)}uu`)
})

t.test('a caller who wants the answer whole gets it, up to the limit', async (t) => {
  const rig = new Rig()
  const body = new Body(600)
  body.isOpen = true
  const { number } = rig.send({ method: 'POST' }, body)
  rig.begin(number)
  rig.data(number, 'h'.repeat(600))
  rig.join(number, number, 600)
  await rig.read()
  more(body, 400)
  await rig.read()
  t.notOk(rig.told.some((one) => one.startsWith('cancel')))
  more(body, 1)
  await rig.until(() => rig.told.at(-1)!.startsWith('cancel'))
})

t.test('of what is joined nothing but the rest counts', async (t) => {
  const rig = new Rig()
  const { body, streamed, number } = openCall(rig, 0)
  rig.join(number, number, 0)
  await rig.read()
  // More than a window, from a guest that its host could not keep from it.
  for (let part = 0; part < 5; part++) rig.data(number, Buffer.alloc(64 * KIB))
  rig.host.send({ type: 'stream-credit', of: 'call', number, bytes: 1e12 })
  await rig.read()
  more(body, 3 * WINDOW)
  t.equal(streamed.text, 'u'.repeat(WINDOW))
  t.equal(rig.closed, undefined)
})

t.test('a host may name streams that are not there, twice, or that are not of one function', async (t) => {
  const rig = new Rig()
  const one = openCall(rig, 0)
  const other = openCall(rig, 0)
  const foreign = openCall(rig, 0, 'g')
  const head = rig.stream({ method: 'HEAD' })
  rig.begin(head.call.number)
  for (const [from, to, bytes] of [
    [one.number, foreign.number, 0],
    [foreign.number, one.number, 0],
    [one.number, 99, 0],
    [99, one.number, 0],
    [one.number, head.call.number, 0],
    [one.number, one.number, 7],
    [one.number, one.number, -1],
    [one.number, one.number, Number.NaN],
  ] as const) {
    rig.join(from, to, bytes)
  }
  const nowhere = { of: 'fetch', number: 5 } as const
  rig.host.send({ type: 'stream-join', ...nowhere, to: { of: 'call', number: one.number }, cameBytes: 0 })
  rig.host.send({ type: 'stream-join', of: 'call', number: one.number, to: nowhere, cameBytes: 0 })
  await rig.read()
  more(one.body, 1)
  more(foreign.body, 1)
  await rig.read()
  t.same([one.streamed.text, foreign.streamed.text, rig.closed], ['', '', undefined])
  t.same(withoutMoves(rig.told).slice(-2), ['stream-data {"number":1} 1', 'stream-data {"number":3} 1'])
  rig.join(one.number, one.number, 1)
  rig.join(one.number, other.number, 1)
  rig.join(other.number, one.number, 0)
  await rig.read()
  more(one.body, 3)
  more(other.body, 2)
  t.same([one.streamed.text, other.streamed.text], ['uuu', ''])
})

t.test('either side may leave', async (t) => {
  const rig = new Rig()
  const broken = openCall(rig, 0)
  rig.join(broken.number, broken.number, 0)
  await rig.read()
  broken.body.why = 'The client is gone.'
  broken.body.taker?.readable()
  const unwanted = openCall(rig, 0)
  rig.join(unwanted.number, unwanted.number, 0)
  rig.host.send({ type: 'stream-abort', of: 'call', number: unwanted.number, side: 'received' })
  await rig.read()
  t.match(rig.told.at(-2), /^stream-abort .*"side":"sent".* The client is gone\.$/)
  t.ok(unwanted.body.isStopped)
  more(unwanted.body, 5)
  t.equal(unwanted.streamed.text, '')
})

t.test('nothing goes to an answer that has ended, and no bytes more than it announces', async (t) => {
  const rig = new Rig()
  const source = openCall(rig, 0)
  const ended = openCall(rig, 0)
  rig.join(source.number, ended.number, 0)
  rig.end(ended.number)
  await rig.until(() => rig.results.length === 1)
  more(source.body, 5)
  t.equal(ended.streamed.text, '')
  const body = new Body(0)
  body.isOpen = true
  const { call } = rig.stream({ method: 'POST' }, body)
  rig.begin(call.number, [['content-length', '4']])
  rig.join(call.number, call.number, 0)
  await rig.read()
  more(body, 5)
  await rig.until(() => rig.told.at(-1)!.startsWith('cancel'))
  rig.end(call.number)
  await rig.until(() => rig.results.length === 2)
  t.match(rig.results[1], { outcome: 'invalid-response', detail: /more than the 4 bytes/ })
})

t.test('a host that is lost ends what it had joined', async (t) => {
  const rig = new Rig()
  const { body, streamed, number } = openCall(rig, 0)
  rig.join(number, number, 0)
  await rig.read()
  rig.connection.lose(() => undefined)
  t.match(rig.results, [{ outcome: 'host-lost' }])
  t.ok(body.isStopped)
  more(body, 5)
  t.equal(streamed.text, '')
})

t.test('the bodies of fetches are joined as those of calls', async (t) => {
  const rig = new Rig()
  const { body, streamed, number } = openCall(rig, 0)
  const wrote: string[] = []
  let target: Parameters<StreamSource['passTo']>[0] | undefined
  const fetch: StreamSource & StreamTarget = {
    functionName: 'f',
    aheadBytes: 0,
    isJoinable: true,
    hasSent: (bytes) => bytes === 3,
    passTo: (to) => (target = to),
    goOn: () => {},
    joinWith: () => {},
    write: (bytes) => wrote.push(Buffer.from(bytes).toString()),
  }
  rig.fetches.set(7, fetch)
  const of = 'fetch'
  rig.host.send({ type: 'stream-join', of: 'call', number, to: { of, number: 7 }, cameBytes: 0 })
  rig.host.send({ type: 'stream-join', of, number: 7, to: { of: 'call', number }, cameBytes: 3 })
  await rig.read()
  more(body, 2)
  target?.write(Buffer.from('back'))
  t.same([wrote, streamed.text, target?.aheadBytes], [['uu'], 'back', 4])
  await rig.until(() => rig.told.filter((one) => one.startsWith('stream-moved')).length === 2)
})
