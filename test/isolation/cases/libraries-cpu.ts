/** Group C2 of the list of attacks, rows C24 to C26: CPU by what native functions and Node.js' modules do for a function. */
import type { IsolationCase } from '../harness/isolation-case.ts'
import { burns, LIMITS, moduleOf } from './libraries-kit.ts'

const CRYPTO = `import crypto from 'node:crypto'`
const ZLIB = `import zlib from 'node:zlib'`

function inModules(id: string, title: string, scope: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return burns(id, title, { files: moduleOf(scope, handler), ...more })
}

const CRYPTOGRAPHY: readonly IsolationCase[] = [
  inModules('C24a', 'PBKDF2 of two billion rounds', CRYPTO, `crypto.pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512')`),
  inModules(
    'C24b',
    'PBKDF2 of two billion rounds, with a callback',
    CRYPTO,
    `await new Promise((done) => crypto.pbkdf2('a', 'b', 2 ** 31 - 1, 64, 'sha512', done))`,
  ),
  inModules(
    'C24c',
    'scrypt of a thousand blocks',
    CRYPTO,
    `crypto.scryptSync('a', 'b', 64, { N: 2 ** 14, r: 8, p: 1000, maxmem: 2 ** 30 })`,
  ),
  inModules('C24d', 'RSA keys of 8192 bits', CRYPTO, `for (;;) crypto.generateKeyPairSync('rsa', { modulusLength: 8192 })`),
  inModules(
    'C24e',
    'digests of ten megabytes, again and again',
    CRYPTO,
    `const bytes = Buffer.alloc(1e7); for (;;) crypto.createHash('sha512').update(bytes).digest()`,
  ),
  inModules(
    'C24f',
    'ciphers of a megabyte, again and again',
    CRYPTO,
    `const bytes = Buffer.alloc(1e6); for (;;) { const cipher = crypto.createCipheriv('aes-256-gcm', Buffer.alloc(32), Buffer.alloc(12)); cipher.update(bytes); cipher.final() }`,
  ),
  inModules(
    'C24g',
    'signatures, again and again',
    CRYPTO,
    `const { privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-521' }); for (;;) crypto.sign('sha512', Buffer.alloc(9), privateKey)`,
  ),
  inModules(
    'C24h',
    'random bytes, again and again',
    CRYPTO,
    `for (;;) crypto.randomBytes(65536)`,
    // Each piece is awaited from the host, which takes no CPU of the function.
    { expect: { code: /^(?:cpu-exceeded|timeout)$/ } },
  ),
  burns('C24i', 'PBKDF2 of four billion rounds by crypto.subtle', {
    handler: `const key = await crypto.subtle.importKey('raw', new Uint8Array(9), 'PBKDF2', false, ['deriveBits'])
      await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: new Uint8Array(9), iterations: 2 ** 32 - 1 }, key, 512)`,
  }),
  burns('C24j', 'RSA keys of 8192 bits by crypto.subtle', {
    handler: `for (;;) await crypto.subtle.generateKey({ name: 'RSA-PSS', modulusLength: 8192, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, true, ['sign'])`,
  }),
]

const NOISE = `const bytes = Buffer.alloc(2e6); for (let at = 0; at < bytes.length; at++) bytes[at] = (at * at) >> 5`

const COMPRESSION: readonly IsolationCase[] = [
  inModules('C25a', 'deflate at its best, again and again', ZLIB, `${NOISE}; for (;;) zlib.deflateSync(bytes, { level: 9 })`),
  inModules(
    'C25b',
    'brotli at its best, again and again',
    ZLIB,
    `${NOISE}; for (;;) zlib.brotliCompressSync(bytes)`,
    // What it keeps for that may be too much.
    { limits: { ...LIMITS, memoryMb: 256 } },
  ),
  inModules(
    'C25c',
    'a bomb that is read, and not kept',
    `${ZLIB}\nconst piece = zlib.gzipSync(Buffer.alloc(5e6))`,
    `for (;;) zlib.gunzipSync(piece)`,
  ),
  inModules(
    'C25d',
    'a bomb that is read as a stream, and not kept',
    `${ZLIB}\nconst piece = zlib.gzipSync(Buffer.alloc(5e6))`,
    `const stream = zlib.createGunzip(); stream.on('data', () => {}); const write = () => { while (stream.write(piece)); stream.once('drain', write) }; write(); await new Promise(() => {})`,
  ),
  burns('C25e', 'a CompressionStream without end', {
    handler: `const bytes = new Uint8Array(65536); const stream = new CompressionStream('gzip'); const writer = stream.writable.getWriter()
      void stream.readable.pipeTo(new WritableStream()); for (;;) await writer.write(bytes)`,
  }),
]

const SERVER = (listener: string): string => `import { createServer } from 'node:http'
let callsSeen = 0
export default createServer((req, res) => {
  if (req.url.endsWith('/again')) return res.end('seen ' + callsSeen)
  if (req.url.endsWith('/end')) for (;;);
  callsSeen++
  ${listener}
})
`

const LOOPS: readonly IsolationCase[] = [
  burns('C26a', 'a pattern for URLs that backtracks', {
    handler: `new URLPattern({ pathname: '/((?:a+)+b)' }).test({ pathname: '/' + 'a'.repeat(40) })`,
  }),
  burns('C26b', 'a loop when a message comes', {
    handler: `const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { for (;;); }; port2.postMessage(1); await new Promise(() => {})`,
  }),
  burns('C26c', 'a loop when nobody awaits a rejected promise', {
    scope: `addEventListener('unhandledrejection', () => { for (;;); })`,
    handler: 'Promise.reject(1); await new Promise(() => {})',
  }),
  inModules(
    'C26d',
    'ticks without end',
    `import process from 'node:process'`,
    `(function next() { process.nextTick(next) })(); await new Promise(() => {})`,
    { expect: { status: 502, code: /^(?:cpu-exceeded|memory-exceeded)$/ } },
  ),
  inModules(
    'C26e',
    'a stream that is never full',
    `import { Readable } from 'node:stream'`,
    `await new Promise(() => new Readable({ read() { this.push('x') } }).resume())`,
  ),
  burns('C26f', 'a server of node:http that loops', { files: SERVER('for (;;);') }),
  {
    ...burns('C26g', 'a server of node:http that never answers', { files: SERVER('') }),
    verdict: 'E',
    billed: 'full',
    // Its modules have to load within that, on a busy machine too.
    limits: { ...LIMITS, wallMs: 1_000 },
    expect: { status: 504, code: 'timeout' },
    again: 'any',
  },
  {
    ...burns('C26h', 'a server of node:http that writes without end', {
      files: SERVER(
        `const write = () => { if (res.destroyed) return; res.write('x'.repeat(65536)); setImmediate(write) }; write()`,
      ),
    }),
    verdict: 'E',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 2_000, memoryMb: 128 },
    // It streams, as far as its client reads, until its CPU limit.
    expect: { status: 200, code: 'cut-off' },
    again: 'any',
    leavesWork: true,
  },
]

export const LIBRARY_CPU_CASES: readonly IsolationCase[] = [...CRYPTOGRAPHY, ...COMPRESSION, ...LOOPS]
