/** Sockets as modules of Node.js get them. */
import { OF_SOCKET } from '@carpool/runtime'
import t from 'tap'
import { Guest } from './support/guest.ts'

/** Logs what it hears of a socket, on which TLS starts with the second call. */
const TWO_CALLS = `(() => {
  const say = (what) => (event) => console.log(what, event instanceof Uint8Array ? String.fromCharCode(...event) : JSON.stringify(event))
  const events = { connected: say('connected'), data: say('data'), ended: say('ended'), room: say('room'), closed: say('closed') }
  let socket
  return { default: { fetch(request) {
    if (request.method === 'PUT') socket.took(1)
    else if (socket === undefined) socket = carpoolSupport_.openSocket({ kind: 'tcp', host: 'h', port: 1 }, events)
    else socket.startTls({ serverName: 'h', isVerified: true, alpn: [] })
    return new Response('')
  } } }
})()`

function guestAwaitingTls(): Guest {
  const guest = new Guest().load(TWO_CALLS)
  guest.call()
  guest.socketConnected(1, { remoteAddress: '', remotePort: 0 })
  guest.streamData(OF_SOCKET, 1, 'S')
  t.match(guest.callToFail().message, 'TLS cannot start while 1 bytes that came in the clear are not read.')
  t.strictSame(guest.startedTls, [])
  guest.call({ method: 'PUT' })
  guest.call()
  t.match(guest.startedTls, [{ socket: 1, options: { serverName: 'h' } }])
  return guest
}

const PLAIN = ['info: connected {"remoteAddress":"","remotePort":0}', 'info: data S']

t.test('what comes once TLS is spoken is data', (t) => {
  const guest = guestAwaitingTls()
  guest.socketConnected(1, { remoteAddress: '', remotePort: 0, tls: {} })
  guest.streamData(OF_SOCKET, 1, 'safe')
  t.strictSame(guest.lines.slice(0, 2), PLAIN)
  t.strictSame(guest.lines.slice(3), ['info: data safe'])
  guest.isolate.dispose()
  t.end()
})

t.test('what comes in the clear where TLS is to begin ends the socket, and nobody hears it', (t) => {
  const guest = guestAwaitingTls()
  guest.streamData(OF_SOCKET, 1, 'evil')
  guest.streamData(OF_SOCKET, 1, 'more')
  guest.socketConnected(1, { remoteAddress: '', remotePort: 0, tls: {} })
  t.strictSame(guest.lines.slice(0, 2), PLAIN)
  t.match(guest.lines.slice(2), [/^info: closed .*"ok":false,"code":"ERR_SSL_WRONG_VERSION_NUMBER"/])
  t.strictSame(guest.stoppedSockets, [1])
  guest.isolate.dispose()
  t.end()
})
