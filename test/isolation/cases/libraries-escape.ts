/** Group C1 of the list of attacks, rows E34 to E39: what libraries of the runtime, and Node.js' modules, could give away. */
import { call } from '../harness/call.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { finds, FRAMES, LIMITS, moduleOf } from './libraries-kit.ts'

/** Notes what does not throw. */
const REFUSED = `const refused = async (name, attempt, codes = /./) => {
  try { const value = await attempt(); found.push(name + ' gave ' + String(value).slice(0, 40)) } catch (error) { if (!codes.test(error.code ?? error.message)) found.push(name + ' ' + error.code + ' ' + error.message) }
}`

const PATHS = `[
  '/etc/passwd', '/proc/self/environ', '/proc/self/cmdline', '../../../../etc/passwd', './../../../etc/passwd', '/var/task/../../etc/passwd', '..', '/', '.',
  'data/../../../../etc/passwd', 'data/..\\\\..\\\\..\\\\etc/passwd', '%2e%2e/%2e%2e/etc/passwd', 'data/secret.txt/../../../../etc/passwd', 'index.js', 'package.json', '../package.json', 'beside.txt',
  '__proto__', 'constructor', 'toString', '/__proto__', 'data\\0.txt', '/etc/passwd\\0.txt', '', ' ', '//etc/passwd', '/dev/zero', '/sys/kernel/notes', '~/.ssh/id_rsa',
  new URL('file:///etc/passwd'), new URL('file:///var/task/../etc/passwd'), new URL('file:///%2e%2e/%2e%2e/etc/passwd'), Buffer.from('/etc/passwd'), new Uint8Array(Buffer.from('../../etc/passwd')),
  { toString: () => '/etc/passwd' }, 0, 1, 3, -1, null,
]`

const FILES: readonly IsolationCase[] = [
  {
    ...finds('E34a', 'files of the machine, by the file system of the bundle', '', ''),
    files: {
      'index.js': moduleOf(
        `import fs from 'node:fs'
const asset = new URL('./data/a.txt', import.meta.url)`,
        `const found = []
        ${REFUSED}
        const code = /^(?:ENOENT|EISDIR|ENOTDIR|EBADF|EINVAL|ERR_\\w+)$/
        for (const path of ${PATHS}) {
          const name = String(path)
          await refused('readFileSync ' + name, () => fs.readFileSync(path), code)
          await refused('readFile ' + name, () => fs.promises.readFile(path, 'utf8'), code)
          await refused('callback ' + name, () => new Promise((done, failed) => fs.readFile(path, (error, bytes) => (error ? failed(error) : done(bytes)))), code)
          await refused('stream ' + name, async () => { let text = ''; for await (const chunk of fs.createReadStream(path)) text += chunk; return text }, code)
          try { fs.readlinkSync(path); found.push('readlink ' + name) } catch {}
        }
        const seen = []
        const walk = (folder) => { for (const name of fs.readdirSync(folder)) { const path = (folder === '/' ? '' : folder) + '/' + name; seen.push(path); if (fs.statSync(path).isDirectory()) walk(path) } }
        walk('/')
        const files = seen.filter((path) => fs.statSync(path).isFile())
        if (files.length !== 1 || !files[0].endsWith('/data/a.txt')) found.push(files.join())
        if (fs.readFileSync(asset, 'utf8') !== 'asset') found.push('the asset')
        return new Response(JSON.stringify(found))`,
      ),
      'data/a.txt': 'asset',
      'beside.txt': 'beside',
    },
  },
  {
    ...finds('E34b', 'writes to the files of the bundle', '', ''),
    files: {
      'index.js': moduleOf(
        `import fs from 'node:fs'
const asset = new URL('./data/a.txt', import.meta.url)`,
        `const found = []
        ${REFUSED}
        const calls = { writeFileSync: [asset, 'x'], appendFileSync: [asset, 'x'], unlinkSync: [asset], rmSync: [asset], renameSync: [asset, '/b'], copyFileSync: [asset, '/b'], mkdirSync: ['/b'], symlinkSync: ['/etc/passwd', '/b'], linkSync: [asset, '/b'], truncateSync: [asset], chmodSync: [asset, 0o777], mkdtempSync: ['/tmp/a'], rmdirSync: ['/'] }
        for (const [name, args] of Object.entries(calls)) await refused(name, () => fs[name](...args))
        await refused('promises.writeFile', () => fs.promises.writeFile(asset, 'x'))
        await refused('openSync', () => fs.openSync(asset, 'w'))
        await refused('createWriteStream', () => new Promise((done, failed) => fs.createWriteStream('/b').on('error', failed).on('finish', done).end('x')))
        // What is read is a copy.
        fs.readFileSync(asset).fill(0)
        if (fs.readFileSync(asset, 'utf8') !== 'asset') found.push('the asset')
        return new Response(JSON.stringify(found))`,
      ),
      'data/a.txt': 'asset',
    },
  },
]

const MACHINE: readonly IsolationCase[] = [
  finds(
    'E35a',
    'the machine, by modules of Node.js that have nothing of it',
    `import childProcess from 'node:child_process'
import cluster from 'node:cluster'
import dgram from 'node:dgram'
import inspector from 'node:inspector'
import module from 'node:module'
import net from 'node:net'
import process from 'node:process'
import tls from 'node:tls'
import v8 from 'node:v8'
import vm from 'node:vm'
import worker from 'node:worker_threads'`,
    `${REFUSED}
    await refused('exec', () => childProcess.execSync('id'))
    await refused('spawn', () => childProcess.spawn('id'))
    await refused('fork', () => childProcess.fork('x.js'))
    await refused('cluster', () => cluster.fork())
    await refused('dgram', () => dgram.createSocket('udp4'))
    await refused('inspector', () => inspector.open())
    await refused('session', () => new inspector.Session().connect())
    await refused('require', () => module.createRequire('/index.js')('fs'))
    await refused('load', () => module._load('fs'))
    await refused('snapshot', () => v8.getHeapSnapshot())
    await refused('flags', () => v8.setFlagsFromString('--allow-natives-syntax'))
    await refused('context', () => vm.createContext({}))
    await refused('new context', () => vm.runInNewContext('this'))
    await refused('worker', () => new worker.Worker('x.js'))
    await refused('tls', () => new Promise((done, failed) => tls.connect(1, '127.0.0.1').on('error', failed).on('secureConnect', done)))
    for (const name of ['binding', '_linkedBinding', 'dlopen', 'kill', 'abort', 'chdir', 'setuid', 'send', 'execve']) {
      await refused('process.' + name, () => process[name]('fs'))
    }
    if (vm.runInThisContext('globalThis') !== globalThis) found.push('another global')
    const builtin = process.getBuiltinModule?.('fs')
    if (builtin !== undefined) try { builtin.readFileSync('/etc/passwd'); found.push('getBuiltinModule') } catch {}`,
  ),
  finds(
    'E35b',
    'facts of the machine, by os and process',
    `import os from 'node:os'
import process from 'node:process'
import v8 from 'node:v8'`,
    `const text = JSON.stringify([os.hostname(), os.userInfo(), os.networkInterfaces(), os.cpus(), os.homedir(), os.tmpdir(), process.argv, process.execArgv, process.execPath, process.cwd(), process.pid, process.ppid, process.title, process.env, process.config, process.report?.getReport?.()])
    for (const mark of ['/work', '/home/', '/root', '127.0.0.1', 'CARPOOL', 'PATH=', 'NODE_OPTIONS']) if (text.includes(mark)) found.push(mark)
    if (os.cpus().length > 1 || os.uptime() > 1e6) found.push('cores or uptime')
    if (process.pid !== 1) found.push('pid ' + process.pid)
    const burn = () => { let x = 0; for (let i = 0; i < 3e6; i++) x = (x * 31 + i) | 0; globalThis.x = x }
    const clocks = { hrtime: () => String(process.hrtime()), bigint: () => process.hrtime.bigint(), uptime: () => process.uptime(), cpuUsage: () => JSON.stringify(process.cpuUsage?.()), memory: () => JSON.stringify(process.resourceUsage?.()), os: () => os.uptime(), load: () => os.loadavg().join() }
    for (const name of Object.keys(clocks)) { const before = clocks[name](); burn(); if (clocks[name]() !== before) found.push(name) }`,
  ),
  {
    id: 'E35c',
    group: 'escape',
    title: 'an address that is not open, by clients of node:http and node:net',
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 5_000, wallMs: 20_000 },
    files: moduleOf(
      `import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import dns from 'node:dns'`,
      `const found = []
      ${REFUSED}
      const { host, hostname, port } = new URL(new URL(request.url).searchParams.get('to'))
      const asked = (client, options) => () => new Promise((done, failed) => client.get(options, done).on('error', failed))
      await refused('http', asked(http, 'http://' + host))
      await refused('https', asked(https, 'https://' + host))
      await refused('options', asked(http, { hostname, port, path: '/', headers: { host: 'example.com' } }))
      await refused('socket', asked(http, { socketPath: '/run/docker.sock', path: '/' }))
      await refused('agent', asked(http, { hostname, port, agent: new http.Agent({ keepAlive: true }), createConnection: () => net.connect(port, hostname) }))
      await refused('net', () => new Promise((done, failed) => net.connect(Number(port), hostname).on('error', failed).on('connect', done)))
      await refused('listen', () => new Promise((done, failed) => net.createServer().on('error', failed).listen(0, done)))
      await refused('dns', () => dns.promises.resolve4('example.com'))
      return new Response(JSON.stringify(found))`,
    ),
    attack: async ({ rig, call: own }) => ({
      answers: [await own(`/?to=${encodeURIComponent(`http://127.0.0.1:${rig.canary.port}/`)}`)],
    }),
    expect: { body: '[]' },
    isRepeatable: false,
  },
]

const CONTEXT: readonly IsolationCase[] = [
  {
    id: 'E36',
    group: 'escape',
    title: 'the store of another call in an AsyncLocalStorage, across timers, fetches, streams and promises that they share',
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 5_000, wallMs: 20_000 },
    files: moduleOf(
      `import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
const store = new AsyncLocalStorage()
store.enterWith('of the module scope')
const bell = new EventEmitter()
let ring
const shared = new Promise((resolve) => { ring = resolve })`,
      `const found = []
      const own = new URL(request.url).searchParams.get('own')
      const expected = (where, ...value) => { const seen = store.getStore(); if (seen !== (value.length > 0 ? value[0] : own)) found.push(where + ' ' + seen) }
      expected('at first', undefined)
      const turn = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
      const way = Number(own) % 3
      if (way === 0) store.enterWith(own)
      const rest = async () => {
        expected('begin')
        await null; expected('microtask')
        for (let ms = 0; ms < 5; ms++) { await turn(ms); expected('timer') }
        await fetch('http://127.0.0.1:1/').catch(() => {}); expected('fetch')
        const piped = new Response('x').body.pipeThrough(new TransformStream({ transform(chunk, controller) { controller.enqueue(chunk) } }))
        await new Response(piped).text(); expected('stream')
        bell.once('ring', () => {}); bell.emit('ring'); expected('event')
        if (own === '9') ring('rung')
        await shared; expected('shared promise')
        await new Promise((resolve) => process.nextTick(resolve)); expected('tick')
        queueMicrotask(() => expected('queued')); await turn(1); expected('end')
      }
      if (way === 0) await rest(); else await store.run(own, rest)
      if (way !== 0) expected('behind', undefined)
      if (way === 2) store.disable()
      return new Response(JSON.stringify(found))`,
    ),
    attack: async ({ call: own }) => ({
      answers: await Promise.all(Array.from({ length: 10 }, (_, index) => own(`/?own=${index}`))),
    }),
    expect: { body: '[]' },
    isRepeatable: false,
  },
]

const KEYS: readonly IsolationCase[] = [
  finds(
    'E37a',
    'the secret of a key that cannot be extracted',
    `import crypto from 'node:crypto'`,
    `${REFUSED}
    const secret = 'canary-of-this-key'
    const key = await crypto.subtle.importKey('raw', Buffer.from(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
    const node = crypto.createSecretKey(Buffer.from(secret))
    for (const format of ['raw', 'jwk', 'pkcs8', 'spki']) await refused('export ' + format, () => crypto.subtle.exportKey(format, key))
    await refused('wrap', async () => crypto.subtle.wrapKey('raw', key, await crypto.subtle.generateKey({ name: 'AES-KW', length: 256 }, true, ['wrapKey']), 'AES-KW'))
    const values = (value, depth = 0) => (typeof value !== 'object' || value === null || depth > 3 ? [value] : Reflect.ownKeys(value).flatMap((name) => values(value[name], depth + 1)))
    for (const [name, one] of Object.entries({ key, node })) {
      if (values(one).some((value) => String(value).includes(secret))) found.push(name)
      if (JSON.stringify(one).includes(secret)) found.push(name + ' as JSON')
      const copied = await Promise.try(() => structuredClone(one)).catch(() => undefined)
      if (copied?.extractable === true || (copied !== undefined && values(copied).some((value) => String(value).includes(secret)))) found.push(name + ' as a copy')
    }
    // The internals of a key, by what the libraries call with it.
    const { apply } = Reflect
    const caught = []
    for (const owner of [Map.prototype, WeakMap.prototype, Uint8Array.prototype]) for (const method of ['get', 'set', 'slice', 'subarray']) {
      const own = owner[method]
      if (typeof own === 'function') owner[method] = function (...args) { caught.push(this, ...args); return apply(own, this, args) }
    }
    await crypto.subtle.sign('HMAC', key, new Uint8Array(4))
    crypto.createHmac('sha256', node).update('a').digest()
    for (const value of caught) if (typeof value === 'object' && value !== null && Object.prototype.toString.call(value) === '[object Object]' && Reflect.getPrototypeOf(value) === null) found.push('a native object')`,
  ),
  finds(
    'E37b',
    'what stands for a key, a digest or a cipher, and is none',
    `import crypto from 'node:crypto'
import zlib from 'node:zlib'`,
    `${REFUSED}
    const key = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
    const lies = [Object.create(CryptoKey.prototype), Object.create(key), new Proxy(key, {}), { ...key, type: 'secret', algorithm: { name: 'HMAC', hash: { name: 'SHA-256' } }, usages: ['sign'] }, structuredClone({}), Symbol('key'), 1n]
    for (const lie of lies) await refused('sign', () => crypto.subtle.sign('HMAC', lie, new Uint8Array(4)))
    for (const lie of [Object.create(crypto.KeyObject.prototype), new Proxy(crypto.createSecretKey(Buffer.from('a')), {}), {}, 5]) await refused('hmac', () => crypto.createHmac('sha256', lie).update('a').digest('hex'))
    const { Hash, Hmac } = crypto
    for (const name of ['update', 'digest', 'copy']) {
      await refused('hash ' + name, () => Hash.prototype[name].call(Object.create(Hash.prototype), 'a'))
      await refused('hmac ' + name, () => Hmac.prototype[name].call(crypto.createHash('sha256'), 'a'))
    }
    const cipher = crypto.createCipheriv('aes-128-gcm', Buffer.alloc(16), Buffer.alloc(12))
    cipher.final()
    await refused('cipher', () => cipher.update('a'))
    await refused('final', () => cipher.final())
    const hash = crypto.createHash('sha256')
    hash.digest()
    await refused('digest', () => hash.digest())
    await refused('update', () => hash.update('a'))`,
    // A Hash is no Hmac in Node.js either, but one by its methods.
    { expect: { body: /^\[(?:"hmac \w+ gave [^"]*",?)*\]$/ } },
  ),
  {
    id: 'E37c',
    group: 'escape',
    title: 'keys and digests of one function, by another that names them the same',
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 5_000, wallMs: 20_000 },
    files: moduleOf(
      `import crypto from 'node:crypto'
const store = new Map()`,
      `const { searchParams } = new URL(request.url)
      const before = store.size + ' ' + (globalThis.kept === undefined)
      store.set('key', crypto.createSecretKey(crypto.randomBytes(16)))
      globalThis.kept = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt'])
      const raw = Buffer.from(await crypto.subtle.exportKey('raw', kept)).toString('hex')
      return new Response(before + ' ' + raw + ' ' + crypto.randomUUID())`,
    ),
    expect: { body: /^0 true [0-9a-f]{64} / },
    check: async ({ t, rig, name }, { answers }) => {
      const other = `${name}-other`
      await rig.server.deploy(other, moduleOf('', `return new Response(typeof globalThis.kept + ' ' + crypto.randomUUID())`))
      const { text } = await call(`${rig.server.url}/${other}/`)
      t.match(text, /^undefined /)
      t.notOk(
        answers.some((answer) => answer.text.endsWith(text.slice(-36))),
        'and neither random numbers',
      )
    },
    isRepeatable: false,
  },
]

/** Every built-in that the libraries could use, each in turn made to take away what it is given. */
const TAMPER = `
const { apply, ownKeys } = Reflect
const owners = { Uint8Array: Uint8Array.prototype, TypedArray: Object.getPrototypeOf(Uint8Array.prototype), ArrayBuffer: ArrayBuffer.prototype, Array: Array.prototype, DataView: DataView.prototype }
const transfer = ArrayBuffer.prototype.transfer
const take = (value) => { try { if (value instanceof ArrayBuffer) apply(transfer, value, [0]); else if (ArrayBuffer.isView(value)) apply(transfer, value.buffer, [0]) } catch {} }
const tampered = (owner, name, work) => {
  const property = Object.getOwnPropertyDescriptor(owner, name)
  if (typeof property?.value !== 'function' || name === 'constructor') return
  let isIn = false
  owner[name] = function (...args) {
    if (!isIn) { isIn = true; take(this); args.forEach(take); isIn = false }
    return apply(property.value, this, args)
  }
  try { work() } catch {} finally { Object.defineProperty(owner, name, property) }
}`

const TAMPERING: readonly IsolationCase[] = [
  {
    id: 'E38a',
    group: 'escape',
    title: 'buffers that are taken away while native functions work on them',
    verdict: 'R',
    billed: 'full',
    // Whoever does that may run in circles.
    limits: { ...LIMITS, cpuMs: 300, wallMs: 20_000 },
    files: moduleOf(
      `import crypto from 'node:crypto'
import zlib from 'node:zlib'
${TAMPER}`,
      `const works = [
        () => zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(2e5, 'abc'))), () => zlib.brotliDecompressSync(zlib.brotliCompressSync('abc')), () => zlib.inflateSync(Buffer.from('nothing')),
        () => crypto.createHash('sha256').update(Buffer.alloc(1e5)).digest('hex'), () => crypto.pbkdf2Sync('a', 'b', 10, 99, 'sha256'), () => crypto.scryptSync('a', 'b', 64, { N: 16 }), () => crypto.hkdfSync('sha256', 'a', 'b', 'c', 99),
        () => { const cipher = crypto.createCipheriv('aes-128-gcm', Buffer.alloc(16), Buffer.alloc(12)); cipher.update(Buffer.alloc(1e5)); cipher.final(); cipher.getAuthTag() },
        () => { const { privateKey, publicKey } = crypto.generateKeyPairSync('ed25519'); crypto.verify(null, Buffer.alloc(9), publicKey, crypto.sign(null, Buffer.alloc(9), privateKey)) }, () => crypto.randomBytes(99), () => crypto.timingSafeEqual(Buffer.alloc(9), Buffer.alloc(9)),
      ]
      const { searchParams } = new URL(request.url)
      const owner = owners[searchParams.get('owner')]
      for (const name of ownKeys(owner)) tampered(owner, name, works[searchParams.get('work')])
      return new Response('fine')`,
    ),
    attack: async ({ call: own }) => {
      const answers = []
      for (const owner of ['Uint8Array', 'TypedArray', 'ArrayBuffer', 'Array', 'DataView']) {
        for (let work = 0; work < 11; work++) answers.push(await own(`/?owner=${owner}&work=${work}`))
      }
      return { answers }
    },
    expect: { code: /^(?:|cpu-exceeded|memory-exceeded|exception|isolate-lost)$/ },
    again: 'any',
    isRepeatable: false,
    mayShow: FRAMES,
  },
  finds(
    'E38b',
    'levels, windows, flushes and sizes of compression out of their ranges',
    `import zlib from 'node:zlib'`,
    `const numbers = [-(2 ** 31), -16, -15, -9, -2, -1, 0, 1, 7, 8, 9, 10, 15, 16, 31, 32, 47, 48, 63, 64, 255, 2 ** 16, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, 0.5, NaN, Infinity, -Infinity, '9', null, undefined, {}, [], true]
    let tried = 0
    for (const method of ['gzipSync', 'gunzipSync', 'deflateSync', 'inflateSync', 'deflateRawSync', 'inflateRawSync', 'unzipSync']) {
      for (const option of ['level', 'windowBits', 'memLevel', 'strategy', 'flush', 'finishFlush', 'chunkSize', 'maxOutputLength', 'dictionary']) {
        for (const value of numbers) for (const input of ['', 'abc', Buffer.alloc(999)]) { tried++; try { zlib[method](input, { [option]: value }) } catch (error) { if (!(error instanceof Error)) found.push(method + ' ' + option) } }
      }
    }
    for (let key = -1; key < 12; key++) for (const value of numbers) for (const method of ['brotliCompressSync', 'brotliDecompressSync']) { tried++; try { zlib[method]('abc', { params: { [key]: value } }) } catch (error) { if (!(error instanceof Error)) found.push(method + ' ' + key) } }
    if (tried < 5000) found.push('tried ' + tried)`,
    { again: 'any', limits: { ...LIMITS, cpuMs: 20_000, wallMs: 60_000 } },
  ),
]

const SERVERS: readonly IsolationCase[] = [
  {
    id: 'E39',
    group: 'escape',
    title: 'headers and answers that a server of node:http writes past its own checks',
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 5_000, wallMs: 5_000 },
    mayShow: FRAMES,
    files: `import { createServer } from 'node:http'
let callsSeen = 0
const WAYS = {
  value: (res) => res.setHeader('x-a', 'b\\r\\nx-injected: 1'),
  name: (res) => res.setHeader('x-a\\r\\nx-injected: 1', 'b'),
  status: (res) => res.writeHead(200, 'OK\\r\\nx-injected: 1'),
  message: (res) => { res.statusMessage = 'OK\\r\\nx-injected: 1' },
  split: (res) => { res._header = 'HTTP/1.1 200 OK\\r\\nx-a: b\\n x-injected: 1\\r\\n\\r\\n'; res._headerSent = false },
  socket: (res) => { res.socket.write('HTTP/1.1 200 OK\\r\\nx-injected: 1\\r\\n\\r\\n') },
  length: (res) => { res.setHeader('content-length', '2') },
  longer: (res) => { res.setHeader('content-length', '999') },
  chunked: (res) => { res.setHeader('transfer-encoding', 'chunked') },
  connection: (res) => { res.setHeader('connection', 'upgrade'); res.setHeader('upgrade', 'websocket') },
  early: (res) => { res.writeEarlyHints?.({ link: '</a>; rel=preload' }); res.writeContinue?.(); res.writeProcessing?.() },
  code: (res) => { res.statusCode = 101 },
}
export default createServer((req, res) => {
  if (req.url.endsWith('/again')) return res.end('seen ' + callsSeen)
  if (req.url.endsWith('/end')) for (;;);
  callsSeen++
  try { WAYS[req.url.slice(req.url.lastIndexOf('/') + 1)](res) } catch (error) { res.setHeader('x-refused', error.code ?? error.name) }
  res.end('fine')
})
`,
    // A header that was taken away is never sent, so such an answer does not come.
    attack: async ({ call: own }) => {
      const ways = [
        'value',
        'name',
        'status',
        'message',
        'split',
        'socket',
        'length',
        'longer',
        'chunked',
        'connection',
        'early',
        'code',
      ]
      const answers = []
      for (const way of ways) answers.push(await own(`/${way}`))
      return { answers }
    },
    expect: { code: /^(?:|exception|invalid-response|timeout)$/ },
    check: ({ t }, { answers }) => {
      for (const { path, status, headers, text } of answers) {
        t.notOk(headers.has('x-injected'), `${path}: no header gets in`)
        t.ok(status >= 500 || text.endsWith('fine') || text === 'fi', `${path}: ${status} ${text}`)
      }
    },
    isRepeatable: false,
  },
]

export const LIBRARY_ESCAPE_CASES: readonly IsolationCase[] = [
  ...FILES,
  ...MACHINE,
  ...CONTEXT,
  ...KEYS,
  ...TAMPERING,
  ...SERVERS,
]
