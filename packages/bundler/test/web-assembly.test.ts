/** `.wasm` files in a function: bundled, compiled when it is loaded, by the real runtime. */
import { join } from 'node:path'
import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { Guest } from '../../runtime/test/support/guest.ts'
import { moduleOf } from '../../runtime/test/support/wasm.ts'
import { refusalOf } from './support/refusal.ts'

type GuestOptions = NonNullable<Parameters<Guest['load']>[1]>

const LIMITS = { memoryMb: 64, cpuMs: 1_000, wallMs: 30_000, streamMs: 0, idleMs: 0, concurrency: 1 }
const ADD = Buffer.from(moduleOf([]))
const WITH_MEMORY = Buffer.from(moduleOf([{ initial: 1 }]))
/** The preamble, and a section that says nothing of itself. */
const BROKEN = Buffer.from([...ADD.subarray(0, 8), 1, 1, 0xff])

type Files = Parameters<typeof t.testdir>[0]

/** Bundles files, of which the first is the entry, and loads them in a guest. */
async function load(files: Files, options: GuestOptions = {}): Promise<Guest> {
  const folder = t.testdir(files)
  const { code } = await bundleFunction(join(folder, Object.keys(files ?? {})[0]!))
  t.notMatch(code, folder)
  const guest = new Guest(128).load(`(${code.trim().replace(/;$/, '')})(carpoolSupport_)`, { limits: LIMITS, ...options })
  t.teardown(() => guest.isolate.isDisposed || guest.isolate.dispose())
  return guest
}

async function valueOf(files: Files, options: GuestOptions = {}): Promise<unknown> {
  const guest = await load(files, options)
  if (guest.loaded?.['ok'] !== true) throw new Error(JSON.stringify(guest.loaded))
  return JSON.parse(guest.call().body)
}

const FIVE = `async () => Response.json((await WebAssembly.instantiate(add)).exports.add(2, 3))`

t.test('a .wasm file is imported as a compiled module, however it is named', async (t) => {
  const more = {
    'add.wasm': ADD,
    'old.cjs': `exports.add = require('./add.wasm')`,
    'package.json': '{"type":"module"}',
    'node_modules/adds': {
      'package.json': '{"name":"adds","main":"index.js"}',
      'index.js': `exports.add = require('./more/add.wasm')`,
      'more': { 'add.wasm': ADD },
    },
  }
  const forms = {
    'a default import': `import add from './add.wasm'; export default ${FIVE}`,
    'the name that others give it': `import add from './add.wasm?module'; export default ${FIVE}`,
    'a CommonJS module': `import { add } from './old.cjs'; export default ${FIVE}`,
    'a package': `import { add } from 'adds'; export default ${FIVE}`,
    'an import in a call': `export default async () => { const { default: add } = await import('./add.wasm'); return Response.json(new WebAssembly.Instance(add).exports.add(2, 3)) }`,
    'a module scope that awaits': `import add from './add.wasm'; const { exports } = await WebAssembly.instantiate(add); export default () => Response.json(exports.add(2, 3))`,
  }
  for (const [title, source] of Object.entries(forms)) t.equal(await valueOf({ 'index.mjs': source, ...more }), 5, title)
  t.equal(
    await valueOf({ 'index.cjs': `const add = require('./add.wasm'); exports.fetch = ${FIVE}`, ...more, 'package.json': '{}' }),
    5,
    'a CommonJS entry',
  )
  const { inputs } = await bundleFunction(t.testdir({ 'index.mjs': forms['a default import'], 'add.wasm': ADD }))
  t.match(inputs.join(), /add\.wasm/, 'it is watched')
})

t.test('what is not imported cannot be compiled, unless the operator allows it', async (t) => {
  const source = `
    import add from './add.wasm'
    const bytes = new Uint8Array(${JSON.stringify([...ADD])})
    const tried = async (run) => { try { return typeof await run() } catch (error) { return [error.name, error.message] } }
    export default async () => Response.json([
      await tried(() => new WebAssembly.Module(bytes)), await tried(() => WebAssembly.compile(bytes)), await tried(() => WebAssembly.instantiate(bytes)),
      WebAssembly.validate(bytes), add instanceof WebAssembly.Module, WebAssembly.Module.exports(add).length, await tried(() => add.constructor.prototype.constructor(bytes)),
    ])`
  const files = { 'index.mjs': source, 'add.wasm': ADD }
  const refusal = ['CompileError', /import the \.wasm file\. The operator can allow more by the setting webAssembly/]
  t.match(await valueOf(files), [refusal, refusal, refusal, true, true, 1, ['TypeError']])
  t.match(await valueOf(files, { webAssembly: true }), ['object', 'object', 'object', true, true, 1])
  t.equal(await valueOf({ 'index.mjs': 'export default () => Response.json(typeof WebAssembly)', 'add.wasm': ADD }), 'undefined')
})

t.test('files are compiled once, while module scope runs', (t) => {
  const file = JSON.stringify({ 'a.wasm': ADD.toString('base64') })
  const guest = new Guest().load(`(() => {
    const [first] = Object.values(carpoolSupport_.webAssembly(${file}))
    const tried = (run) => { try { return typeof run() } catch (error) { return error.message } }
    const again = tried(() => carpoolSupport_.webAssembly(${file}))
    return { default: () => Response.json([String(first), again, tried(() => carpoolSupport_.webAssembly(${file}))]) }
  })()`)
  const message = 'The WebAssembly files of a function are compiled when it is loaded, all at once.'
  t.same(JSON.parse(guest.call().body), ['[object WebAssembly.Module]', message, message])
  const late = new Guest().load(
    `({ default: () => { try { carpoolSupport_.webAssembly(${file}) } catch (error) { return Response.json(error.message) } } })`,
  )
  t.equal(JSON.parse(late.call().body), message)
  t.end()
})

t.test('what cannot be compiled is refused with its name, where it is bundled or where it is loaded', async (t) => {
  const entry = `import bad from './bad.wasm'; export default () => new Response(String(bad))`
  const refusal = await refusalOf(bundleFunction(t.testdir({ 'index.mjs': entry, 'bad.wasm': 'no module' })))
  t.equal(refusal.code, 'bundle-failed')
  t.match(refusal.message, /^index\.mjs:1:17: bad\.wasm is no WebAssembly module of version 1\n/)
  const missing = await refusalOf(bundleFunction(t.testdir({ 'index.mjs': entry })))
  t.match(missing.message, /^index\.mjs:1:17: Could not resolve "\.\/bad\.wasm"/)
  const guest = await load({ 'index.mjs': entry, 'bad.wasm': BROKEN })
  t.match(guest.loaded, { ok: false, code: 'load-failed', message: /^CompileError: bad\.wasm: WebAssembly\.Module\(\): / })
  const shared = await load({ 'index.mjs': entry, 'bad.wasm': Buffer.from(moduleOf([{ initial: 1, maximum: 2, flags: 2 }])) })
  t.match(shared.loaded, { ok: false, message: 'CompileError: bad.wasm: Shared memory is not available.' })
})

t.test('code and memories of imported modules count against the memory limit', async (t) => {
  const grows = `
    import m from './memory.wasm'
    export default () => {
      const { exports } = new WebAssembly.Instance(m)
      let pages = 0
      while (exports.grow(1) !== -1) pages++
      return Response.json(pages)
    }`
  t.equal(await valueOf({ 'index.mjs': grows, 'memory.wasm': WITH_MEMORY }), 255, 'a quarter of 64 MiB')
  const guest = await load({ 'index.mjs': grows, 'memory.wasm': Buffer.from(moduleOf([{ initial: 3000 }])) })
  t.match(guest.callToFail(), { message: /RangeError: A WebAssembly memory that may grow to 3000 pages of 64 KiB does not fit/ })
  // A section of its own name, which V8 keeps without looking at it.
  const padding = 15 * 1024 * 1024
  const size = [0, 1, 2, 3].map((part) => ((padding >> (7 * part)) & 0x7f) | (part < 3 ? 0x80 : 0))
  const large = Buffer.concat([ADD, Buffer.from([0, ...size]), Buffer.alloc(padding)])
  const small = new Guest(128).load(
    `carpoolSupport_.webAssembly({ 'large.wasm': ${JSON.stringify(large.toString('base64'))} })`,
    { limits: { ...LIMITS, memoryMb: 16 } },
  )
  t.match(small.loaded, {
    ok: false,
    message:
      /^RangeError: (?:The code of large\.wasm of \d+ bytes does not fit into what is left of the memory limit of 16 MiB|.*[Aa]rray)/,
  })
})
