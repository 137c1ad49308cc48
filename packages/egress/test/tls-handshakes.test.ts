/** What a peer may have the thread compute for TLS, in fetches and in sockets. */
import { createServer, TLSSocket, type TlsOptions as ServerOptions } from 'node:tls'
import type { TlsOptions } from '@carpool/core'
import t, { type Test } from 'tap'
import { authority, identity } from './fixtures/certificates.ts'
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
