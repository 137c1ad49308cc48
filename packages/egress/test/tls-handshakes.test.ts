/** What a peer may have the thread compute for TLS, in fetches and in sockets. */
import { createServer, TLSSocket, type TlsOptions as ServerOptions } from 'node:tls'
import type { TlsOptions } from '@carpool/core'
import t, { type Test } from 'tap'
import { authority, identity } from './fixtures/certificates.ts'
import { forgedIdentity } from './fixtures/forged-certificates.ts'
import { TestSockets, TLS } from './fixtures/test-sockets.ts'
import { fetcher, listen } from './fixtures/upstream.ts'

const CA = authority()
const LENIENT: TlsOptions = { ...TLS, isVerified: false }
const resolve = async () => [{ address: '127.0.0.1', family: 4 }]

async function tlsPeer(t: Test, options: ServerOptions, handler = (_socket: TLSSocket): void => {}): Promise<number> {
  const server = createServer(options, (socket) => handler(socket.on('error', () => socket.destroy()).resume()))
  return listen(
    t,
    server.on('tlsClientError', () => {}),
  )
}

t.test('a peer does not choose how large the numbers of a key exchange are', async (t) => {
  const own = identity({ names: ['db.test'], issuer: CA, type: 'rsa' })
  const port = await tlsPeer(t, { ...own, dhparam: 'auto', ciphers: 'DHE-RSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' })
  const sockets = new TestSockets({ resolve })
  for (const tls of [LENIENT, { ...LENIENT, ca: CA.cert }]) {
    t.match(await sockets.open({ host: 'db.test', port, tls }).untilClosed(), { ok: false, code: /HANDSHAKE_FAILURE/ })
  }
  t.match(await fetcher({ resolve })(`https://db.test:${port}/`), { ok: false, message: /HANDSHAKE_FAILURE/ })
})

t.test('a peer does not have TLS agreed on again and again', async (t) => {
  let agreed = 0
  const port = await tlsPeer(t, { ...identity(), maxVersion: 'TLSv1.2' }, (socket) => {
    socket.renegotiate({}, (error) => {
      if (error === null) agreed += 1
      socket.end()
    })
  })
  const sockets = new TestSockets({ resolve })
  for (const tls of [LENIENT, { ...LENIENT, ca: CA.cert }]) {
    t.match(await sockets.open({ host: 'db.test', port, tls }).untilClosed(), { ok: false, code: /^ERR_SSL_/ })
  }
  t.equal(agreed, 0)
})

t.test('certificates that are more than any server needs are not even looked at', async (t) => {
  const port = await tlsPeer(t, forgedIdentity(20))
  const sockets = new TestSockets({ resolve })
  const message = /sent more than 32768 bytes before TLS was agreed on/
  for (const tls of [LENIENT, { ...TLS, ca: CA.cert }]) {
    const end = { ok: false, code: 'ERR_SSL_EXCESSIVE_MESSAGE_SIZE', message }
    t.match(await sockets.open({ host: 'db.test', port, tls }).untilClosed(), end)
  }
  t.ok(sockets.isClean)
  t.match(await fetcher({ resolve })(`https://db.test:${port}/`), { ok: false, message })
})

t.test('a peer whose certificates cost much is served seldom, and others as before', async (t) => {
  const [evil, good] = [await tlsPeer(t, forgedIdentity(6)), await tlsPeer(t, identity(), (socket) => void socket.end('good'))]
  const sockets = new TestSockets({ resolve, limits: { connectTimeoutMs: 60_000 } })
  const open = (port: number, owner: string) =>
    sockets.open({ host: 'db.test', port, tls: LENIENT }, { owner, functionName: owner })
  const first = open(evil, 'evil')
  await first.untilConnected()
  const many = Array.from({ length: 20 }, () => open(evil, 'evil'))
  for (let index = 0; index < 20; index++) {
    const socket = open(good, 'good')
    await socket.untilText('good')
    socket.stop()
    await socket.untilClosed()
  }
  // They came last, and were all served before the last of the others.
  t.ok(many.some(({ connections }) => connections.length === 0))
  for (const socket of [first, ...many]) socket.stop()
  for (const socket of [first, ...many]) await socket.untilClosed()
  t.ok(sockets.isClean)
})
