/** What native functions do for a function ends at its CPU limit, is on its bill, and leaves the host as it was. */
import t from 'tap'
import { IS_WHOLE } from '../../test/support/form.ts'
import { inProcessHost } from './support/in-process-host.ts'
import { isSound, PRELUDE } from './support/native-work.ts'

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

t.test('an encoder of brotli ends wherever the limit finds it', async (t) => {
  const host = await inProcessHost()
  for (let cpuMs = 40; cpuMs <= 520; cpuMs += IS_WHOLE ? 40 : 160) {
    const revision = `${REVISION}-${cpuMs}`
    host.load(revision, ENDLESS['brotli']!, { cpuMs, memoryMb: 256 })
    const { message } = await host.endOf(host.invoke(revision))
    t.match(message, { type: 'failed', outcome: 'cpu-exceeded' })
  }
  t.ok(await isSound(host))
})

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
