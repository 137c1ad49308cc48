/** What native functions do for a function ends at its limits, is on its bill, and leaves the host as it was. */
import t from 'tap'
import { inProcessHost, type InProcessHost } from './support/in-process-host.ts'

const REVISION = 'works'

/** What takes far more CPU than there is, each in one call of the function's code. */
const ENDLESS: Record<string, string> = {
  'PBKDF2': `const key = await crypto.subtle.importKey('raw', new Uint8Array(9), 'PBKDF2', false, ['deriveBits'])
    await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: new Uint8Array(9), iterations: 4e9 }, key, 512)`,
  'RSA keys': `for (;;) await crypto.subtle.generateKey({ name: 'RSA-PSS', modulusLength: 8192, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, true, ['sign'])`,
  'digests': `const bytes = new Uint8Array(3e7); for (;;) await crypto.subtle.digest('SHA-1', bytes)`,
  'ciphers': `const key = await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-CTR', false, ['encrypt'])
    const bytes = new Uint8Array(1e7)
    for (;;) await crypto.subtle.encrypt({ name: 'AES-CTR', counter: new Uint8Array(16), length: 64 }, key, bytes)`,
  'compression': `const bytes = crypto.getRandomValues(new Uint8Array(6e4))
    for (;;) { const stream = new CompressionStream('gzip'), writer = stream.writable.getWriter(); void writer.write(bytes); void writer.close(); await new Response(stream.readable).arrayBuffer() }`,
  'brotli': `const bytes = new Uint8Array(4e6)
    for (let at = 0; at < bytes.length; at++) bytes[at] = (at * at) >> 5
    for (;;) { const stream = new CompressionStream('brotli'), writer = stream.writable.getWriter(); void writer.write(bytes); void writer.close(); await new Response(stream.readable).arrayBuffer() }`,
  'scrypt': `carpoolSupport_.module('crypto', { Buffer: PLAIN }).scryptSync('password', 'salt', 32, { N: 2 ** 16, r: 8, p: 1000, maxmem: 1e9 })`,
  'signatures': `const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-521' }, true, ['sign'])
    for (;;) await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-512' }, privateKey, new Uint8Array(1))`,
}

/** What the built-in modules in a function's bundle use. */
const PRELUDE = `const PLAIN = { isEncoding: () => true, from: (data, at, size) => typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data, at, size) };`

/** Calls beside it, which must be served as if nothing was. */
async function isSound(host: InProcessHost): Promise<boolean> {
  host.load(
    'neighbour',
    `return new Response([...new Uint8Array(await crypto.subtle.digest('SHA-1', new Uint8Array(3)))].length)`,
  )
  return (await host.answerOf(host.invoke('neighbour'))) === '20'
}

for (const [name, code] of Object.entries(ENDLESS)) {
  t.test(`${name} end at the CPU limit`, async (t) => {
    const host = await inProcessHost()
    host.load(REVISION, PRELUDE + code, { cpuMs: 100, memoryMb: 256 })
    const invocation = host.invoke(REVISION)
    const { message } = await host.endOf(invocation)
    t.match(message, { type: 'failed', outcome: 'cpu-exceeded' })
    const cpuUs = await host.cpuUsOf(invocation)
    t.ok(cpuUs >= 100_000 && cpuUs <= 160_000, `${cpuUs} us`)
    t.ok(await isSound(host))
    t.notOk(host.sent.some(({ message }) => message.type === 'poisoned'))
  })
}

t.test('what they use is on the bill of the entry', async (t) => {
  const host = await inProcessHost()
  host.load(
    REVISION,
    `const count = Number(new URL(request.url).pathname.slice(1))
     const key = await crypto.subtle.importKey('raw', new Uint8Array(9), 'PBKDF2', false, ['deriveBits'])
     await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(9), iterations: count }, key, 256)
     return new Response()`,
    { cpuMs: 5_000 },
  )
  await host.endOf(host.invoke(REVISION, '/10'))
  const [few, many] = [host.invoke(REVISION, '/10'), host.invoke(REVISION, '/200000')]
  const [fewUs, manyUs] = [await host.cpuUsOf(few), await host.cpuUsOf(many)]
  t.ok(manyUs > 20 * fewUs && manyUs > 20_000, `${fewUs} and ${manyUs} us`)
})

/** What would take far more memory than there is. */
const HOARDS: Record<string, string> = {
  'keys': `const kept = []
    for (;;) kept.push(await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign']))`,
  'digests': `const { createHash } = carpoolSupport_.module('crypto', { Buffer: PLAIN })
    const kept = []
    for (;;) kept.push(createHash('sha512'))`,
  'compressors': `const { createGzip } = carpoolSupport_.module('zlib', { Buffer: PLAIN, stream: () => ({ Transform: function () {} }) })
    const kept = []
    for (;;) kept.push(createGzip())`,
  'bombs': `const piece = new Uint8Array(await new Response(new Response(new Uint8Array(1e6)).body.pipeThrough(new CompressionStream('gzip'))).arrayBuffer())
    const kept = []
    for (;;) kept.push(await new Response(new Response(piece).body.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer())`,
  'texts': `const key = await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-CTR', false, ['encrypt'])
    const kept = [], bytes = new Uint8Array(1e6)
    for (;;) kept.push(await crypto.subtle.encrypt({ name: 'AES-CTR', counter: new Uint8Array(16), length: 64 }, key, bytes))`,
}

for (const [name, code] of Object.entries(HOARDS)) {
  t.test(`${name} count against the memory limit`, async (t) => {
    const host = await inProcessHost()
    host.load(REVISION, `${PRELUDE} try { ${code} } catch (error) { return new Response(error.name + ': ' + error.message) }`, {
      memoryMb: 32,
      cpuMs: 30_000,
    })
    const before = process.memoryUsage.rss()
    const { message, body } = await host.endOf(host.invoke(REVISION))
    if (message.type === 'failed') t.match(message, { outcome: 'memory-exceeded' })
    else t.match(body, /^RangeError: |not fit/)
    t.ok(process.memoryUsage.rss() - before < 150 * 2 ** 20, 'and not far beyond it')
    t.ok(await isSound(host))
  })
}
