/**
 * What native functions keep for a function counts against its memory limit, and to be refused more leaves the host as it was.
 */
import t from 'tap'
import { inProcessHost } from './support/in-process-host.ts'
import { isSound, PRELUDE } from './support/native-work.ts'

const REVISION = 'works'

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
  'encoders of brotli': `const { createBrotliCompress } = carpoolSupport_.module('zlib', { Buffer: PLAIN, stream: () => ({ Transform: STREAM }) })
    const kept = [], bytes = crypto.getRandomValues(new Uint8Array(6e4))
    for (;;) kept.push(createBrotliCompress({ params: { 1: 5 } })) && kept.at(-1).write(bytes)`,
  'encoders of brotli at their best': `const { createBrotliCompress } = carpoolSupport_.module('zlib', { Buffer: PLAIN, stream: () => ({ Transform: STREAM }) })
    const kept = [], bytes = crypto.getRandomValues(new Uint8Array(6e4))
    for (;;) kept.push(createBrotliCompress()) && kept.at(-1).write(bytes)`,
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
