import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t from 'tap'
import { HandshakeGate } from '../src/handshake-gate.ts'
import { listen } from './fixtures/upstream.ts'

const holder = { owner: 'own', functionName: 'own' }

t.test('what TLS answers behind its own end goes nowhere, and what comes is still read', async (t) => {
  const peers: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => void peers.push(socket))
  const raw = connect({ port: await listen(t, server), allowHalfOpen: true })
  const turns = { enter: (_holder: object, step: () => void) => step() }
  const gate = new HandshakeGate(raw, { holder, turns, maxHandshakeBytes: 1024 })
  let [sent, came] = ['', '']
  gate.on('data', (bytes: Buffer) => (came += bytes.toString()))
  await once(server, 'connection')
  const peer = peers[0]!.on('data', (bytes: Buffer) => (sent += bytes.toString()))
  gate.end('last')
  await once(peer, 'end')
  await new Promise<unknown>((taken) => gate.write('behind', taken))
  peer.end('answer')
  await once(gate, 'end')
  t.strictSame({ sent, came }, { sent: 'last', came: 'answer' })
  // It goes with its TLS only.
  await once(raw, 'close')
  t.notOk(gate.destroyed)
  gate.destroy()
})

t.test('an error of the connection ends it', async (t) => {
  const raw = connect({ port: 9, host: '127.0.0.1' })
  const gate = new HandshakeGate(raw, { holder, turns: { enter: () => {} }, maxHandshakeBytes: 1024 })
  const [cause] = (await once(gate, 'error')) as [Error]
  t.match(cause, { code: 'ECONNREFUSED' })
  t.ok(gate.destroyed && raw.destroyed)
})
