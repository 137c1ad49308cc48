/**
 * The native functions that libraries of the runtime are given, called as none would: user code can reach each of them with
 * anything, so the process lives on, whatever it is, and what they are asked ends soon.
 */
import { createRequire } from 'node:module'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import ivm from 'isolated-vm'
import t from 'tap'
import { runs } from '../../../test/support/form.ts'

const require = createRequire(import.meta.url)
const addon = join(
  import.meta.dirname,
  `../../../host/native/prebuilt/${process.platform}-${process.arch}-${process.versions.modules}.node`,
)

/** A core, and a library that gives away its native functions. */
const SCRIPTS = ['(function () {})', '(function (require, natives) { return natives })']
const { addScript } = require(addon) as { addScript(name: string, source: string): number }
const nativeModule = new ivm.NativeModule(addon)
const core = SCRIPTS.map((source) => addScript('probe', source))[0]!

/** All that there are: those of libraries, and the one of the core. */
const NATIVES = 'globalThis.natives = library(1); natives.random = random'

function giveNatives(context: ivm.Context): void {
  const native = nativeModule.createSync(context)
  native.getSync('boot', { reference: true }).applySync(undefined, [core])
  for (const name of ['library', 'random']) {
    context.global.setSync(name, native.getSync(name, { reference: true }).derefInto())
  }
  context.evalSync(NATIVES)
}

/** Calls natives at random, for so many times, by a generator of its own. */
const FUZZ = `(seed, times) => {
  let state = seed
  const next = (limit) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor((state / 2 ** 32) * limit) }
  const pick = (list) => list[next(list.length)]
  const names = Object.keys(natives)
  const kept = []
  const detached = () => { const bytes = new Uint8Array(100); bytes.buffer.transfer(); return bytes }
  const shrunk = () => { const buffer = new ArrayBuffer(100, { maxByteLength: 200 }); const view = new Uint8Array(buffer, 10, 50); buffer.resize(20); return view }
  const tracking = () => { const buffer = new ArrayBuffer(100, { maxByteLength: 200 }); const view = new Uint8Array(buffer, 10); buffer.resize(next(200)); return view }
  const evil = { valueOf() { throw new Error('called') }, toString() { throw new Error('called') }, [Symbol.toPrimitive]() { throw new Error('called') } }
  const sizes = [0, 1, 7, 8, 12, 16, 20, 24, 31, 32, 33, 64, 65, 100, 128, 256, 1024, 70000]
  const bytes = () => { const view = new Uint8Array(pick(sizes)); for (let at = 0; at < view.length; at += 1 + next(9)) view[at] = next(256); return view }
  const der = () => Uint8Array.fromHex(pick(['302a300506032b6570032100' + 'ab'.repeat(32), '302e020100300506032b657004220420' + 'cd'.repeat(32), '302e020100300506032b656e04220420' + 'cd'.repeat(32), '308201', '30820b0a', '3059301306072a8648ce3d020106082a8648ce3d03010703420004' + '00'.repeat(64)]))
  const text = () => pick(['SHA256', 'sha1', 'SHAKE128', 'MD5', 'AES-128-GCM', 'aes-256-cbc', 'aes-128-ctr', 'AES-256-OCB', 'id-aes128-wrap', 'AES-128-XTS', 'AES-128-CCM', 'AES-128-SIV', 'chacha20-poly1305', 'NULL', 'EC', 'RSA', 'ED25519', 'X25519', 'prime256v1', 'sect571r1', '', 'x'.repeat(63), 'x'.repeat(64), 'x'.repeat(100000), 'é\\u4e00', 'SHA256\\0'])
  const number = () => pick([0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 16, 31, -1, -2, -15, 64, 128, 512, 1024, 65536, 2 ** 20, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, -(2 ** 31), 0.5, NaN, Infinity, -Infinity, -0])
  const other = () => pick([undefined, null, true, false, 1n, Symbol('a'), {}, [], evil, natives, () => 1, new Proxy(new Uint8Array(4), {}), new Proxy({}, {}), new DataView(new ArrayBuffer(9)), new Float64Array(9), new Uint32Array([1, 11, 2, 22, 3, 16, 6, 1, 5, 99]), new Uint32Array([1, 5]), new ArrayBuffer(33), new Map(), new Date(), new Error('a')])
  const value = () => pick([bytes, bytes, bytes, der, text, text, number, number, number, other, detached, shrunk, tracking, () => true, () => false, () => (kept.length > 0 ? pick(kept) : undefined), () => (kept.length > 0 ? pick(kept) : undefined), () => (kept.length > 0 ? pick(kept) : undefined)])()
  const starts = [() => natives.hashNew('SHA256', undefined), () => natives.hashNew('SHA512', new Uint8Array(9)), () => natives.cipherNew('AES-128-GCM', true, new Uint8Array(16), new Uint8Array(12), 16), () => natives.cipherNew('AES-128-CBC', false, new Uint8Array(16), new Uint8Array(16)),
    () => natives.keyRead(der(), true), () => natives.keyRead(der(), false), () => natives.keyGenerate('EC', 'prime256v1'), () => natives.mixNew(new Uint8Array(128), 16, 1), () => natives.flateNew(true, 9, 31, 9, 0), () => natives.flateNew(false, 0, 47, 0, 0), () => natives.brotliNew(true, new Uint32Array([1, 5, 2, 16])), () => natives.brotliNew(false, new Uint32Array(0))]
  let answered = 0
  for (let count = 0; count < times; count++) {
    if (next(20) === 0) { try { kept.push(pick(starts)()) } catch {} }
    const args = Array.from({ length: next(8) }, value)
    // Often something that fits in front.
    if (next(2) === 0 && kept.length > 0) args[0] = pick(kept)
    try {
      const result = natives[pick(names)](...args)
      answered++
      if (typeof result === 'object' && result !== null) kept.push(result)
    } catch {}
    if (kept.length > 60) kept.splice(0, 30)
  }
  return answered
}`

const SEEDS = runs(12)

t.test('no call ends the process', async (t) => {
  // In a process of its own: what is looked for would end it.
  const script = `
    const ivm = require('isolated-vm')
    const file = ${JSON.stringify(addon)}
    const { addScript } = require(file)
    const [core] = ${JSON.stringify(SCRIPTS)}.map((source) => addScript('probe', source))
    const module_ = new ivm.NativeModule(file)
    let answered = 0
    for (let seed = 1; seed <= ${SEEDS}; seed++) {
      const isolate = new ivm.Isolate({ memoryLimit: 48 })
      const context = isolate.createContextSync()
      const native = module_.createSync(context)
      native.getSync('boot', { reference: true }).applySync(undefined, [core])
      for (const name of ['library', 'random']) context.global.setSync(name, native.getSync(name, { reference: true }).derefInto())
      context.evalSync(${JSON.stringify(NATIVES)})
      try { answered += context.evalSync('(' + ${JSON.stringify(FUZZ)} + ')(' + seed * 7919 + ', 6000)', { timeout: 60000 }) }
      catch (error) { if (!/memory|disposed/i.test(String(error))) throw error }
      if (!isolate.isDisposed) isolate.dispose()
    }
    console.log(answered)
    process.exit(answered > ${SEEDS * 800} ? 0 : 3)`
  const { status, signal, stderr, stdout } = spawnSync(process.execPath, ['--no-node-snapshot', '-e', script], {
    encoding: 'utf8',
    cwd: import.meta.dirname,
    env: { PATH: process.env['PATH'] },
  })
  t.same({ status, signal, stderr: stderr.slice(0, 2000) }, { status: 0, signal: null, stderr: '' }, stdout)
})

t.test('hostile numbers', async (t) => {
  const isolate = new ivm.Isolate({ memoryLimit: 64 })
  t.teardown(() => isolate.dispose())
  const context = isolate.createContextSync()
  giveNatives(context)
  context.evalSync(`
    globalThis.tlv = (tag, ...parts) => {
      const content = parts.join('')
      const size = content.length / 2
      return tag + (size < 128 ? '' : size < 256 ? '81' : '82') + size.toString(16).padStart(size < 256 ? 2 : 4, '0') + content
    }
    globalThis.number = (bytes, first = '7f') => tlv('02', first + 'ff'.repeat(bytes - 2) + 'fd')
    globalThis.rsa = (...numbers) => natives.keyRead(Uint8Array.fromHex(tlv('30', '020100', '300d06092a864886f70d0101010500', tlv('04', tlv('30', '020100', ...numbers)))), true)
    globalThis.small = number(64)
  `)
  const isRefused = (code: string): unknown => context.evalSync(`${code} === undefined`)
  t.ok(isRefused(`rsa(number(1100), '0203010001', small, small, small, small, small, small)`), 'a modulus beyond the limit')
  t.ok(isRefused(`rsa(small, '0203010001', number(8000), small, small, small, small, small)`), 'a long private exponent')
  t.ok(isRefused(`rsa(small, number(8000), small, small, small, small, small, small)`), 'a long public exponent')
  t.ok(isRefused(`rsa(small, '0203010001', small, number(8000), small, small, small, small)`), 'a long prime')
  t.ok(isRefused(`rsa(small, '0203010001', small, small, small, number(8000), small, small)`), 'a long exponent of a prime')
  t.ok(
    isRefused(
      `natives.keyRead(Uint8Array.fromHex(tlv('30', '020100', tlv('30', '06072a8648ce380401', tlv('30', number(4000), number(20), number(4000))), tlv('04', number(4000)))), true)`,
    ),
    'a key of DSA, which would be computed with',
  )
  t.ok(isRefused(`natives.keyRead(new Uint8Array(20000), true)`), 'a key beyond the limit')
  const throws = (code: string): unknown => context.evalSync(`try { ${code}; 'none' } catch (error) { error.name }`)
  t.equal(throws('natives.mixNew(new Uint8Array(1024), 2 ** 31, 8)'), 'RangeError', 'more memory than there is')
  t.equal(throws('natives.mixNew(new Uint8Array(128 * 2048), 16, 2048)'), 'Error', 'a large block')
  t.equal(throws('natives.hashDigest(natives.hashNew("SHAKE128", undefined), 2 ** 31)'), 'Error', 'a long digest')
  t.equal(throws(`natives.keyGenerate('RSA', 16384)`), 'Error', 'a long key')
  t.equal(throws(`natives.keyGenerate('EC', 'sect571r1')`), 'Error', 'another curve')
  t.equal(throws(`natives.keyGenerate('DH', 2048)`), 'Error', 'another kind of key')
  t.same(
    context.evalSync(`
      const flate = natives.flateNew(true, 1, 15, 8, 0), output = new Uint8Array(1000)
      const before = natives.flateParams(flate, 9, 0)
      natives.flateRun(flate, new Uint8Array(500).fill(7), 0, 500, output, 0, 2)
      JSON.stringify([before, natives.flateParams(flate, 0, 0), natives.flateParams(flate, 9, 3), natives.flateParams(flate, 10, 0), natives.flateParams(flate, 2 ** 31, -5)])`),
    JSON.stringify([0, 0, 0, -2, -2]),
    'parameters of a compressor that writes nowhere',
  )
  t.ok(isRefused(`natives.brotliNew(true, new Uint32Array([6, 1]))`), 'a window of a gigabyte')
  t.equal(
    throws(
      `natives.cipherUpdate(natives.cipherNew('AES-128-CBC', true, new Uint8Array(16), new Uint8Array(16)), new Uint8Array(100), 0, 100, new Uint8Array(100), 0)`,
    ),
    'Error',
    'no room for the output',
  )
})

t.test('all libraries of a context get the same, and those of another context get others', (t) => {
  const isolate = new ivm.Isolate({ memoryLimit: 32 })
  t.teardown(() => isolate.dispose())
  const [one, other] = [isolate.createContextSync(), isolate.createContextSync()]
  giveNatives(one)
  giveNatives(other)
  t.equal(one.evalSync('library(1) === natives && library(1).hashNew === natives.hashNew'), true)
  other.global.setSync('others', one.evalSync('natives', { reference: true }).derefInto())
  t.equal(other.evalSync('library(1) === natives && natives !== others'), true)
  t.end()
})

t.test('an error of one isolate is not seen by the next on its thread', async (t) => {
  const messages = [1, 2].map((round) => {
    const isolate = new ivm.Isolate({ memoryLimit: 32 })
    const context = isolate.createContextSync()
    giveNatives(context)
    const broken = `const cipher = natives.cipherNew('AES-128-CBC', false, new Uint8Array(16), new Uint8Array(16)); natives.cipherFinal(cipher)`
    const other = `natives.sign(natives.keyGenerate('X25519'), undefined, new Uint8Array(4))`
    const message: unknown = context.evalSync(`try { ${round === 1 ? broken : other}; 'none' } catch (error) { error.message }`)
    isolate.dispose()
    return message
  })
  t.match(messages[0], /wrong final block length/)
  t.notMatch(messages[1], /final block/)
})
