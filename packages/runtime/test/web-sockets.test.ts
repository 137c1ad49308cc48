import { OF_CALL, OF_SOCKET, STREAM_FLAGS } from '@carpool/runtime'
import t from 'tap'
import { Guest } from './support/guest.ts'

const UPGRADE: [string, string][] = [
  ['host', 'x'],
  ['upgrade', 'websocket'],
]

/** A function whose handler has `server`, the function's end of a pair, and `client`, that of the client. */
function accepting(body: string, init = ''): string {
  return `{ default: { fetch(request) {
    const [client, server] = Object.values(new WebSocketPair())
    server.accept()
    ${body}
    return new Response(null, { status: 101, webSocket: client${init} })
  } } }`
}

/** Those that run by now. */
function fireTimers(guest: Guest): void {
  for (const timer of Array.from(guest.timers.keys())) guest.fireTimer(timer)
}

t.test('a function accepts a WebSocket, hears of messages and sends some', (t) => {
  const guest = new Guest().load(
    accepting(`
      server.addEventListener('message', ({ data, type, isTrusted }) => {
        console.log(type, isTrusted, typeof data, typeof data === 'string' ? data : new Uint8Array(data).join())
        server.send(data)
      })
      server.send('hello, wörld')`),
  )
  const number = guest.start({ headers: UPGRADE })
  t.equal(guest.heads.get(number)?.status, 101)
  const stream = guest.streamOf(OF_CALL, number)
  guest.streamData(OF_CALL, number, Buffer.from('grüße').toString('latin1'), STREAM_FLAGS.text)
  guest.streamData(OF_CALL, number, '\x00\xff', STREAM_FLAGS.bytes)
  guest.streamData(OF_CALL, number, '', STREAM_FLAGS.text)
  t.strictSame(
    guest.logs.map(({ invocation, text }) => [invocation, text]),
    [
      [number, 'message true string grüße'],
      [number, 'message true object 0,255'],
      [number, 'message true string '],
    ],
  )
  t.strictSame(
    stream.messages.map(({ kind, text }) => [kind, Buffer.from(text, 'latin1').toString(kind === 'text' ? 'utf8' : 'hex')]),
    [
      ['text', 'hello, wörld'],
      ['text', 'grüße'],
      ['bytes', '00ff'],
      ['text', ''],
    ],
  )
  t.end()
})

t.test('a message in parts is one; what was dealt with is credited', (t) => {
  const guest = new Guest().load(accepting(`server.onmessage = ({ data }) => console.log(data.length)`))
  const number = guest.start({ headers: UPGRADE })
  const part = 'x'.repeat(64 * 1024)
  for (let index = 0; index < 3; index++) guest.streamData(OF_CALL, number, part, STREAM_FLAGS.text | STREAM_FLAGS.more)
  t.strictSame(guest.logs, [])
  guest.streamData(OF_CALL, number, 'end', STREAM_FLAGS.text)
  t.strictSame(
    guest.logs.map(({ text }) => text),
    [String(3 * part.length + 3)],
  )
  t.equal(guest.streamOf(OF_CALL, number).credited, 3 * part.length)
  t.end()
})

t.test('a message that is larger than a part leaves in several, and no more than the window', (t) => {
  const guest = new Guest().load(accepting(`server.send('y'.repeat(300 * 1024)); console.log(server.bufferedAmount)`))
  const number = guest.start({ headers: UPGRADE })
  const { messages } = guest.streamOf(OF_CALL, number)
  t.strictSame(
    messages.map(({ text, more }) => [text.length, more]),
    Array.from({ length: 4 }, () => [64 * 1024, true]),
  )
  guest.streamCredit(OF_CALL, number, 64 * 1024)
  t.strictSame([messages.length, messages.at(-1)?.text.length, messages.at(-1)?.more], [5, 44 * 1024, false])
  t.end()
})

t.test('the client closes: the function hears the code, and the call ends', (t) => {
  const guest = new Guest().load(
    accepting(`server.onclose = ({ code, reason, wasClean }) => {
      console.log(code, reason, wasClean, server.readyState)
      server.close()
    }
    server.send('x'); console.log(server.readyState)`),
  )
  const number = guest.start({ headers: UPGRADE })
  guest.streamData(OF_CALL, number, '', STREAM_FLAGS.end, '{"code":4001,"reason":"bye"}')
  t.strictSame(
    guest.logs.map(({ text }) => text),
    ['1', '4001 bye true 3'],
  )
  t.strictSame(guest.endedAnswers, [number])
  t.end()
})

t.test('the function closes, and hears of the answer to it', (t) => {
  const guest = new Guest().load(
    accepting(`server.onclose = ({ code, wasClean }) => console.log('closed', code, wasClean)
    server.onmessage = () => { server.close(3000, 'enough'); console.log(server.readyState); server.send('not sent') }`),
  )
  const number = guest.start({ headers: UPGRADE })
  guest.streamData(OF_CALL, number, '', STREAM_FLAGS.text)
  const stream = guest.streamOf(OF_CALL, number)
  t.strictSame([stream.hasEnded, stream.closing, stream.messages.length], [true, '{"code":3000,"reason":"enough"}', 0])
  t.strictSame(guest.endedAnswers, [])
  guest.streamData(OF_CALL, number, '', STREAM_FLAGS.end, '{"code":3000,"reason":""}')
  t.strictSame(
    guest.logs.map(({ text }) => text),
    ['2', 'closed 3000 true'],
  )
  t.strictSame(guest.endedAnswers, [number])
  t.end()
})

t.test('the client vanishes: the function hears 1006', (t) => {
  const guest = new Guest().load(
    accepting(`server.onclose = ({ code, wasClean }) => console.log(code, wasClean)
    request.signal.onabort = () => console.log('aborted')`),
  )
  const number = guest.start({ headers: UPGRADE })
  guest.cancel(number)
  t.strictSame(
    guest.logs.map(({ text }) => text),
    ['aborted', '1006 false'],
  )
  t.strictSame(guest.endedAnswers, [])
  t.end()
})

t.test('what a handler throws is logged, and the next message is heard', (t) => {
  const guest = new Guest().load(accepting(`server.onmessage = ({ data }) => { throw new Error(data) }`))
  const number = guest.start({ headers: UPGRADE })
  guest.streamData(OF_CALL, number, 'one', STREAM_FLAGS.text)
  guest.streamData(OF_CALL, number, 'two', STREAM_FLAGS.text)
  t.strictSame(
    guest.logs.map(({ text }) => /Error: \w+/.exec(text)?.[0]),
    ['Error: one', 'Error: two'],
  )
  t.end()
})

t.test('what comes behind messages that waited is heard behind them', (t) => {
  const guest = new Guest().load(`{ default: { fetch() {
    const [client, server] = Object.values(new WebSocketPair())
    setTimeout(() => {
      server.accept()
      server.onmessage = ({ data }) => console.log(data)
      server.onclose = ({ code }) => console.log(code)
    }, 5)
    return new Response(null, { status: 101, webSocket: client })
  } } }`)
  const number = guest.start({ headers: UPGRADE })
  guest.streamData(OF_CALL, number, 'one', STREAM_FLAGS.text)
  fireTimers(guest)
  guest.streamData(OF_CALL, number, 'two', STREAM_FLAGS.text)
  guest.streamData(OF_CALL, number, '', STREAM_FLAGS.end, '{"code":4001,"reason":""}')
  fireTimers(guest)
  t.strictSame(
    guest.logs.map(({ text }) => text),
    ['one', 'two', '4001'],
  )
  t.end()
})

t.test('messages wait until the end is accepted', (t) => {
  const guest = new Guest().load(`{ default: { fetch() {
    const [client, server] = Object.values(new WebSocketPair())
    setTimeout(() => { server.accept(); server.onmessage = ({ data }) => console.log(data) }, 5)
    return new Response(null, { status: 101, webSocket: client })
  } } }`)
  const number = guest.start({ headers: UPGRADE })
  guest.streamData(OF_CALL, number, 'early', STREAM_FLAGS.text)
  fireTimers(guest)
  t.strictSame(guest.logs, [])
  fireTimers(guest)
  t.strictSame(
    guest.logs.map(({ text }) => text),
    ['early'],
  )
  t.end()
})

t.test('what is no answer to a request for a WebSocket is refused', (t) => {
  const plain = new Guest().load(accepting(''))
  t.match(plain.callToFail(), { outcome: 'invalid-response', message: /asked for no WebSocket/ })
  const protocol = new Guest().load(accepting('', `, headers: { 'sec-websocket-protocol': 'b' }`))
  const offer: [string, string][] = [...UPGRADE, ['sec-websocket-protocol', 'a, c']]
  t.match(protocol.callToFail({ headers: offer }), { outcome: 'invalid-response', message: /did not offer the subprotocol b/ })
  t.equal(protocol.heads.size, 0)
  const ok = protocol.start({ headers: [...UPGRADE, ['sec-websocket-protocol', 'a, b']] })
  t.strictSame(protocol.heads.get(ok)?.headers, [['sec-websocket-protocol', 'b']])
  t.end()
})

t.test("a client is used once, and what is given away is not the function's any more", (t) => {
  const guest = new Guest().load(`{ default: { fetch() {
    const tell = (act) => { try { act(); console.log('ok') } catch (error) { console.log(error.name + ': ' + error.message) } }
    tell(() => new Response(null, { status: 101 }))
    tell(() => new Response(null, { status: 101, webSocket: {} }))
    const pair = new WebSocketPair()
    tell(() => pair[0].send('x'))
    tell(() => new WebSocket(Symbol.iterator))
    const response = new Response(null, { status: 101, webSocket: pair[0] })
    console.log(response.webSocket === pair[0], new Response(null).webSocket)
    tell(() => response.clone())
    pair[1].accept()
    tell(() => pair[1].close(1005))
    tell(() => pair[1].close(1000, 'x'.repeat(124)))
    setTimeout(() => tell(() => pair[0].accept()))
    return response
  } } }`)
  guest.start({ headers: UPGRADE })
  fireTimers(guest)
  t.match(
    guest.logs.map(({ text }) => text),
    [
      /^RangeError: A response of status 101 needs/,
      /^RangeError: A response of status 101 needs/,
      /^TypeError: A WebSocket must be accepted/,
      /^TypeError/,
      'true null',
      /^TypeError: A response with a WebSocket cannot be cloned/,
      /^InvalidAccessError/,
      /^SyntaxError/,
      /^TypeError: The WebSocket was given away/,
    ],
  )
  t.end()
})

t.test('both ends of a pair may be of the function', (t) => {
  const guest = new Guest().load(`{ default: { async fetch() {
    const [one, two] = Object.values(new WebSocketPair())
    one.accept()
    two.accept()
    two.onmessage = ({ data }) => two.send(data + '!')
    const said = new Promise((resolve) => { one.onmessage = resolve })
    const closed = new Promise((resolve) => { two.onclose = resolve })
    one.send('hi')
    const { data } = await said
    one.close(4000, 'done')
    const { code, reason } = await closed
    return new Response([data, code, reason, one.readyState, two.readyState].join())
  } } }`)
  const number = guest.start()
  while (guest.timers.size > 0) fireTimers(guest)
  t.equal(guest.answers.get(number)?.body, 'hi!,4000,done,3,3')
  t.end()
})

/** A function that opens a WebSocket, and says what happens to it. */
const OPENING = `{ default: { fetch() {
  const socket = globalThis.socket = new WebSocket('https://a.example/chat', ['one', 'two'])
  for (const name of ['open', 'message', 'error', 'close']) {
    socket['on' + name] = ({ data, message, code, reason, wasClean }) =>
      console.log([name, socket.readyState, socket.protocol, data ?? message ?? code, reason, wasClean].join())
  }
  socket.addEventListener('open', () => socket.send('hello'))
  return new Response(socket.url + ' ' + socket.readyState + ' ' + socket.binaryType)
} } }`

t.test('a function opens a WebSocket', (t) => {
  const guest = new Guest().load(OPENING)
  const { body } = guest.call()
  t.equal(body, 'wss://a.example/chat 0 blob')
  const target = { kind: 'websocket', url: 'wss://a.example/chat', protocols: ['one', 'two'], headers: [] }
  t.strictSame([...guest.sockets.values()], [{ invocation: 1, target }])
  guest.socketConnected(1, { remoteAddress: '', remotePort: 0, protocol: 'two', extensions: '' })
  t.match(guest.streamOf(OF_SOCKET, 1).messages, [{ kind: 'text', text: 'hello' }])
  guest.streamData(OF_SOCKET, 1, 'hi', STREAM_FLAGS.text)
  guest.streamData(OF_SOCKET, 1, '', STREAM_FLAGS.end, '{"code":1001,"reason":"away"}')
  guest.socketClosed(1, { ok: true })
  t.strictSame(
    guest.logs.map(({ text }) => text),
    ['open,1,two,,,', 'message,1,two,hi,,', 'close,3,two,1001,away,true'],
  )
  t.end()
})

t.test('one that cannot be opened, and one that breaks off', (t) => {
  for (const isConnected of [false, true]) {
    const guest = new Guest().load(OPENING)
    guest.call()
    if (isConnected) guest.socketConnected(1, { remoteAddress: '', remotePort: 0 })
    guest.socketClosed(1, { ok: false, code: 'ECONNREFUSED', message: 'Nobody listens.' })
    t.strictSame(
      guest.logs.map(({ text }) => text).filter((text) => !text.startsWith('open')),
      [`error,${isConnected ? 1 : 0},,Nobody listens.,,`, 'close,3,,1006,,false'],
    )
  }
  t.end()
})
