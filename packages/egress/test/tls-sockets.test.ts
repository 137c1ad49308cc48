/** TLS of functions' sockets, with real peers and certificates. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { createServer, TLSSocket, type TlsOptions as ServerOptions } from 'node:tls'
import type { TlsOptions } from '@carpool/core'
import t, { type Test } from 'tap'
import { authority, identity } from './fixtures/certificates.ts'
import { TestSockets, TLS } from './fixtures/test-sockets.ts'
import { listen } from './fixtures/upstream.ts'

const CA = authority()
const TRUSTING: TlsOptions = { ...TLS, ca: CA.cert }
const KB = 1024
const DAY_MS = 86_400_000

const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
const localhost = identity({ names: ['db.test', '127.0.0.1'], issuer: CA })

async function tlsPeer(
  t: Test,
  options: ServerOptions = localhost,
  handler = (socket: Socket) => void socket.pipe(socket),
): Promise<number> {
  const server = createServer({ allowHalfOpen: true, ...options }, (socket) => handler(socket.on('error', () => {})))
  return listen(
    t,
    server.on('tlsClientError', () => {}),
  )
}

async function tcpPeer(t: Test, handler: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  return listen(
    t,
    createTcpServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      handler(socket)
    }),
  )
}

t.test('TLS from the beginning, by name and by address, and what is known of it', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tlsPeer(t, { ...localhost, ALPNProtocols: ['postgresql'] })
  for (const host of ['db.test', '127.0.0.1']) {
    const socket = sockets.open({ host, port, tls: { ...TRUSTING, alpn: ['postgresql'] } })
    socket.send('early ')
    const { tls, remotePort } = await socket.untilConnected()
    t.match(tls, { protocol: 'TLSv1.3', alpn: 'postgresql', isAuthorized: true, authorizationError: undefined })
    t.match(tls?.cipher, /^TLS_/)
    t.equal(tls?.certificate, localhost.cert.replace(/-----.+-----|\n/g, ''))
    t.equal(remotePort, port)
    const large = Buffer.alloc(200 * 1024, 'x')
    socket.send(large, true)
    t.match(await socket.untilClosed(), { ok: true, bytesOut: large.length + 6, bytesIn: large.length + 6 })
    t.equal(socket.received.length, large.length + 6)
  }
  t.ok(sockets.isClean)
})

t.test('a function that reads slowly gets all that came before both ends closed TLS', async (t) => {
  const whole = Buffer.alloc(280 * KB).map((_, index) => index % 251)
  const sockets = new TestSockets({ resolve })
  const raws: Socket[] = []
  const { secure } = sockets.outside
  const watched: typeof secure = (raw, options) => {
    raws.push(raw)
    return secure(raw, options)
  }
  Object.assign(sockets.outside, { secure: watched })
  const peers: Socket[] = []
  const port = await tlsPeer(t, localhost, (socket) => void peers.push(socket.resume()))
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }

  for (const isFirst of [true, false]) {
    const open = async () => {
      const socket = sockets.open({ host: 'db.test', port, tls: TRUSTING })
      socket.takes = false
      await socket.untilConnected()
      while (peers.length < raws.length) await new Promise(setImmediate)
      const [raw, peer] = [raws.at(-1)!, peers.at(-1)!]
      if (isFirst) {
        socket.send('', true)
        while (!peer.readableEnded) await new Promise(setImmediate)
      }
      // More than the window: the function is not read for any more, and the last bytes wait in TLS.
      peer.write(whole.subarray(0, 257 * KB))
      while (raw.bytesRead < 257 * KB) await new Promise(setImmediate)
      await turns()
      peer.end(whole.subarray(257 * KB))
      while (!raw.readableEnded && !raw.destroyed) await new Promise(setImmediate)
      if (!isFirst) socket.send('', true)
      while (!raw.destroyed) await new Promise(setImmediate)
      await turns()
      t.equal(socket.closed, undefined)
      t.ok(socket.received.length <= 256 * KB)
      return socket
    }
    const socket = await open()
    socket.takes = true
    socket.credit(socket.received.length)
    t.match(await socket.untilClosed(), { ok: true, bytesIn: whole.length })
    t.ok(socket.isEnded)
    t.ok(socket.received.equals(whole))
    t.ok(sockets.isClean)

    const unread = await open()
    unread.stop()
    t.match(await unread.untilClosed(), { ok: true })
    t.ok(sockets.isClean)
  }
})

t.test('certificates that lie are told by what Node.js says of them', async (t) => {
  const sockets = new TestSockets({ resolve })
  const end = async (certificate: ServerOptions, tls = TRUSTING, host = 'db.test') => {
    const port = await tlsPeer(t, certificate)
    const closed = await sockets.open({ host, port, tls }).untilClosed()
    t.notMatch(JSON.stringify(closed), /deps|openssl\/|\.c:|node:|system-ca/, 'nothing of this machine')
    return closed
  }
  t.match(await end(identity({ names: ['db.test'] })), {
    ok: false,
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    message: 'self-signed certificate',
  })
  t.match(await end(identity({ names: ['other.test'], issuer: CA })), {
    ok: false,
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    message: /Host: db\.test\. is not in the cert's altnames: DNS:other\.test/,
  })
  const past = { notBefore: new Date(Date.now() - 2 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) }
  t.match(await end(identity({ names: ['db.test'], issuer: CA, ...past })), {
    ok: false,
    code: 'CERT_HAS_EXPIRED',
    message: 'certificate has expired',
  })
  t.match(await end(localhost, TLS), { ok: false, code: /^UNABLE_TO_VERIFY_LEAF_SIGNATURE$|^UNABLE_TO_GET_ISSUER_CERT/ })
  t.match(await end(localhost, TRUSTING, 'not.test'), { ok: false, code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  t.match(await end(localhost, { ...TRUSTING, ca: 'none' }), { ok: false, message: /./ })
  t.match(await end(localhost, { ...TRUSTING, cert: 'none', key: 'none' }), { ok: false, code: /^ERR_OSSL_/ })
  t.match(await end({ ...localhost, minVersion: 'TLSv1.3', ALPNProtocols: ['x'] }, { ...TRUSTING, alpn: ['y'] }), {
    ok: false,
    code: /^ERR_SSL_/,
    message: /^The TLS connection to db\.test:\d+ failed: /,
  })
  t.ok(sockets.isClean)
})

t.test('whoever does not verify is told what he got', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tlsPeer(t, identity({ names: ['other.test'] }))
  const socket = sockets.open({ host: 'db.test', port, tls: { ...TLS, isVerified: false } })
  t.match((await socket.untilConnected()).tls, { isAuthorized: false, authorizationError: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  socket.send('', true)
  await socket.untilClosed()
})

t.test('another name than that of the host may be asked for, and the function may say who it is', async (t) => {
  const sockets = new TestSockets({ resolve })
  const client = identity({ names: ['client.test'], issuer: CA })
  const names: unknown[] = []
  const port = await tlsPeer(t, { ...localhost, ca: CA.cert, requestCert: true, rejectUnauthorized: true }, (socket) => {
    if (!(socket instanceof TLSSocket)) return
    names.push(socket.servername, socket.getPeerCertificate().subject.CN)
    socket.end('hello')
  })
  const socket = sockets.open({ host: 'proxy.test', port, tls: { ...TRUSTING, ...client, serverName: 'db.test' } })
  await socket.untilText('hello')
  t.same(names, ['db.test', 'client.test'])
  socket.stop()
  await socket.untilClosed()
})

/** A key whose decryption takes hours, by RFC 8018: PBKDF2 with as many iterations as there may be. */
const HOURS = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGVMGEGCSqGSIb3DQEFDTBUMDMGCSqGSIb3DQEFDDAmBBAHBwcHBwcHBwcHBwcH
BwcHAgR/////MAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBAJCQkJCQkJCQkJ
CQkJCQkJBDAFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUF
BQUFBQUFBQU=
-----END ENCRYPTED PRIVATE KEY-----`

t.test('what a function hands to OpenSSL is bounded work', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tlsPeer(t)
  const peer = await tcpPeer(t, (socket) => socket.write('S'))
  const refused = async (tls: object, message: RegExp) => {
    const refusal = { ok: false, code: 'ERR_INVALID_ARG_VALUE', message }
    t.match(await sockets.open({ host: 'db.test', port, tls: { ...TRUSTING, ...tls } }).untilClosed(), refusal)
    const plain = sockets.open({ host: 'db.test', port: peer })
    await plain.untilText('S')
    plain.startTls({ ...TRUSTING, ...tls })
    t.match(await plain.untilClosed(), refusal)
  }
  const { cert, key } = localhost
  const keyOf = (pair: { readonly privateKey: KeyObject }) => pair.privateKey.export({ type: 'pkcs8', format: 'pem' })
  for (const passphrase of [undefined, 'x']) {
    await refused({ cert, key: HOURS, passphrase }, /encrypted/)
    await refused({ cert, key: `a key\n${HOURS}\n${key}`, passphrase }, /encrypted/)
  }
  const sealed = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const old = sealed.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' })
  await refused({ cert, key: old, passphrase: 'x' }, /encrypted/)
  await refused({ cert, key: keyOf(generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 })) }, /up to 4096 bits/)
  await refused({ cert, key: keyOf(generateKeyPairSync('rsa', { modulusLength: 4352 })) }, /up to 4096 bits/)
  await refused({ ca: CA.cert.repeat(257) }, /too many; the limit is 256/)
  await refused({ cert: cert.repeat(17), key }, /too many; the limit is 16/)
  t.ok(sockets.isClean)

  const many = sockets.open({ host: 'db.test', port, tls: { ...TRUSTING, ca: CA.cert.repeat(256) } })
  await many.untilConnected()
  many.stop()
  await many.untilClosed()
  t.ok(sockets.isClean)
})

t.test('sockets with the same certificates share what is made of them, by function and while there is memory', async (t) => {
  const sockets = new TestSockets({ resolve, limits: { maxMemoryBytes: 24 * 100 * CA.cert.length } })
  const port = await tlsPeer(t)
  const ca = CA.cert.repeat(100)
  const open = (text: string, owner = 'one') =>
    sockets.open({ host: 'db.test', port, tls: { ...TLS, ca: text } }, { owner, functionName: owner })
  const first = open(ca)
  await first.untilConnected()
  const used = sockets.outside.memory.used
  t.ok(used >= ca.length, 'it is counted')
  const alike = [open(ca), open(ca)]
  for (const socket of alike) await socket.untilConnected()
  t.equal(sockets.outside.memory.used, used, 'and once')
  const other = open(ca, 'two')
  await other.untilConnected()
  t.ok(sockets.outside.memory.used > used, 'each function has its own')
  first.stop()
  other.stop()
  await Promise.all([first.untilClosed(), other.untilClosed()])
  t.equal(sockets.outside.memory.used, used, 'until the last of them is closed')
  const different = Array.from({ length: 4 }, (_, index) => open(`${ca}${' '.repeat(index + 1)}`))
  const ends = await Promise.all(
    different.map((socket) => socket.until(({ connections, closed }) => connections.length > 0 || !!closed)),
  )
  t.match(
    ends.map(({ closed }) => closed).find((closed) => closed !== undefined),
    { ok: false, code: 'ENOBUFS' },
  )
  for (const socket of [...alike, ...different]) socket.stop()
  for (const socket of [...alike, ...different]) await socket.untilClosed()
  t.ok(sockets.isClean)
  const again = open(ca)
  await again.untilConnected()
  again.stop()
  await again.untilClosed()
  t.ok(sockets.isClean)
})

t.test('a plain socket speaks TLS from when it is asked to, as databases do', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tcpPeer(t, (socket) => {
    socket.once('data', (request) => {
      socket.write(request.toString() === 'SSLRequest' ? 'S' : 'N')
      const secure = new TLSSocket(socket, { isServer: true, ...localhost }).on('error', () => {})
      secure.on('data', (bytes) => secure.write(bytes.toString().toUpperCase())).on('end', () => secure.end())
    })
  })
  const socket = sockets.open({ host: 'db.test', port })
  socket.send('SSLRequest')
  await socket.untilText('S')
  socket.startTls(TRUSTING)
  socket.send('query')
  t.match((await socket.untilConnected(2)).tls, { isAuthorized: true })
  await socket.untilText('QUERY')
  socket.send('', true)
  t.match(await socket.untilClosed(), { ok: true, bytesOut: 15, bytesIn: 6 })
  t.ok(sockets.isClean)
})

t.test('what was sent before TLS leaves before it, also while the system still takes some of it', async (t) => {
  const sockets = new TestSockets({ resolve })
  const words = ['first', 'second', 'third'].map((word) => word.repeat(10_000))
  const text = words.join('')
  const port = await tcpPeer(t, (socket) => {
    let heard = Buffer.alloc(0)
    socket.on('data', function hear(bytes: Buffer) {
      heard = Buffer.concat([heard, bytes])
      if (heard.length < text.length) return
      socket.off('data', hear).pause()
      // The beginning of TLS may come with it.
      if (heard.length > text.length) socket.unshift(heard.subarray(text.length))
      const secure = new TLSSocket(socket, { isServer: true, ...localhost }).on('error', () => {})
      secure.on('data', (query) => secure.end(`${heard.toString().startsWith(text)} ${query.toString()}`))
    })
  })
  const socket = sockets.open({ host: 'db.test', port })
  await socket.untilConnected()
  for (const word of words) socket.send(word)
  socket.startTls(TRUSTING)
  socket.send('query')
  await socket.untilText('true query')
  socket.send('', true)
  t.match(await socket.untilClosed(), { ok: true })
  t.ok(sockets.isClean)
})

t.test('what a peer says in the clear behind the request for TLS belongs to TLS, which fails', async (t) => {
  const sockets = new TestSockets({ resolve })
  const accepted = Promise.withResolvers<Socket>()
  const port = await tcpPeer(t, accepted.resolve)
  const socket = sockets.open({ host: 'db.test', port })
  const peer = await accepted.promise
  peer.write('S')
  await socket.untilText('S')
  socket.startTls(TRUSTING)
  peer.write('evil that is as long as the head of a record')
  t.match(await socket.untilClosed(), { ok: false, code: /^ERR_SSL_|^EPROTO$/ })
  t.equal(socket.received.toString(), 'S')
  t.ok(sockets.isClean)
})

t.test('TLS does not begin while something that came in the clear waits for the function', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tcpPeer(t, (socket) => void socket.write(Buffer.alloc(2 ** 20)))
  const socket = sockets.open({ host: 'db.test', port })
  socket.takes = false
  await socket.until(({ received }) => received.length > 192 * 1024)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  socket.startTls(TRUSTING)
  t.match(await socket.untilClosed(), { ok: false, code: 'ERR_SSL_WRONG_VERSION_NUMBER' })
  t.ok(sockets.isClean)
})

t.test('nothing is sent to a peer whose certificate is not verified', async (t) => {
  const sockets = new TestSockets({ resolve })
  let received = ''
  const port = await tlsPeer(
    t,
    { ...identity(), maxVersion: 'TLSv1.2' },
    (socket) => void socket.on('data', (bytes) => (received += String(bytes))),
  )
  const socket = sockets.open({ host: 'db.test', port, tls: TRUSTING })
  socket.send('password')
  t.match(await socket.untilClosed(), { ok: false, bytesOut: 0 })
  t.equal(received, '')
})

t.test('handshakes that never end, or end in nonsense', async (t) => {
  const sockets = new TestSockets({ resolve, limits: { connectTimeoutMs: 300 } })
  const end = async (handler: (socket: Socket) => void, target = {}) =>
    sockets.open({ host: 'db.test', port: await tcpPeer(t, handler), tls: TRUSTING, ...target }).untilClosed()
  t.match(await end(() => {}), { ok: false, code: 'ETIMEDOUT', message: /did not agree on TLS within 300 ms\.$/ })
  t.match(await end(() => {}, { timeoutMs: 50 }), {
    ok: false,
    code: 'ETIMEDOUT',
    message: /did not accept the connection in time\.$/,
  })
  t.match(await end((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')), { ok: false, code: /^ERR_SSL_|^EPROTO$/ })
  t.match(await end((socket) => void socket.end()), { ok: false, code: 'ECONNRESET' })
  t.match(await end((socket) => void socket.once('data', () => socket.end())), { ok: false, code: 'ECONNRESET' })
  t.match(await end((socket) => void socket.once('data', () => socket.resetAndDestroy())), { ok: false, code: 'ECONNRESET' })
  t.match(await end((socket) => void socket.write(Buffer.alloc(100_000, 0x16))), { ok: false, code: /^ERR_SSL_|^EPROTO$/ })
  t.ok(sockets.isClean)
})

t.test('TLS that is asked for at the wrong time, or wrongly, ends the socket', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tlsPeer(t)
  const plain = sockets.open({ host: 'db.test', port })
  plain.startTls(TRUSTING)
  t.match(await plain.untilClosed(), { ok: false, code: 'ENOTCONN' })
  const twice = sockets.open({ host: 'db.test', port, tls: TRUSTING })
  await twice.untilConnected()
  twice.startTls(TRUSTING)
  t.match(await twice.untilClosed(), { ok: false, code: 'ENOTCONN' })
  const asked = sockets.open({ host: 'db.test', port })
  await asked.untilConnected()
  asked.send('in the clear')
  asked.startTls(TRUSTING)
  asked.startTls({ ...TLS, isVerified: false })
  t.match(await asked.untilClosed(), { ok: false, code: 'ENOTCONN' })
  for (const options of ['', '5', '{}', 'null']) {
    const socket = sockets.open({ host: 'db.test', port })
    await socket.untilConnected()
    socket.startTls(options)
    t.match(await socket.untilClosed(), { ok: false, code: 'ERR_INVALID_ARG_VALUE' })
  }
  t.ok(sockets.isClean)
})

t.test('a socket that is stopped while it agrees on TLS leaves nothing', async (t) => {
  const sockets = new TestSockets({ resolve })
  const accepted = Promise.withResolvers<Socket>()
  const port = await tcpPeer(t, accepted.resolve)
  const socket = sockets.open({ host: 'db.test', port, tls: TRUSTING })
  const atPeer = await accepted.promise
  await once(atPeer, 'data')
  const left = once(atPeer, 'close')
  socket.stop()
  t.match(await socket.untilClosed(), { ok: true })
  await left
  t.ok(sockets.isClean)
})

t.test('a flood over TLS is read no further than the window goes', async (t) => {
  const sockets = new TestSockets({ resolve })
  const port = await tlsPeer(t, localhost, (socket) => {
    const flood = (): void => {
      while (socket.write(Buffer.alloc(64 * 1024))) {}
    }
    socket.on('drain', flood)
    flood()
  })
  const socket = sockets.open({ host: 'db.test', port, tls: TRUSTING })
  socket.takes = false
  await socket.until(({ received }) => received.length > 192 * 1024)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.ok(socket.received.length <= 256 * 1024)
  socket.takes = true
  socket.credit(256 * 1024)
  await socket.until(({ received }) => received.length > 1024 * 1024)
  socket.stop()
  await socket.untilClosed()
  t.ok(sockets.isClean)
})
