import ivm from 'isolated-vm'

// When Node tears itself down after a natural end, a last garbage collection can run weak callbacks of isolated-vm 7.0.1 that abort
// the process, for their environment is gone by then. An exit by process.exit() has no such tear-down.
process.once('beforeExit', () => setImmediate(() => process.exit()))

/** Web globals in the least form in which the bundled modules ask for them, and without what functions do not have. */
const GLOBALS = `
  for (const name of ['Atomics', 'SharedArrayBuffer', 'FinalizationRegistry', 'WeakRef', 'WebAssembly']) delete globalThis[name]
  globalThis.TextEncoder = class { encode(text) { return Uint8Array.from(unescape(encodeURIComponent(text)), (c) => c.charCodeAt(0)) } }
  globalThis.TextDecoder = class {
    decode(bytes) {
      let text = ''
      for (let index = 0; index < bytes.length; ) {
        const sizes = bytes[index] < 0x80 ? [1] : [2, 3, 4]
        const fits = (size) => { try { return decodeURIComponent(escape(String.fromCharCode(...bytes.slice(index, index + size)))) } catch {} }
        const size = sizes.find((size) => fits(size) !== undefined)
        text += size === undefined ? '\\ufffd' : fits(size)
        index += size ?? 1
      }
      return text
    }
  }
  globalThis.crypto = {
    getRandomValues: (array) => array.map(() => Math.floor(Math.random() * 256)),
    randomUUID: () => '00000000-0000-4000-8000-000000000000',
  }
  globalThis.process = { env: { GREETING: 'hi' } }
  globalThis.queueMicrotask = (task) => void Promise.resolve().then(task)
  globalThis.setTimeout = (task, _ms, ...args) => (Promise.resolve().then(() => task(...args)), 1)
  globalThis.clearTimeout = () => {}
`

/**
 * Runs a bundle in an isolate of its own, as a host does, and there an expression over `exports`.
 * @returns what the expression gives, by way of JSON
 */
export async function runInIsolate(code: string, expression: string): Promise<unknown> {
  const isolate = new ivm.Isolate({ memoryLimit: 64 })
  try {
    const context = await isolate.createContext()
    await context.eval(GLOBALS)
    const script = await isolate.compileScript(code, { filename: 'bundle.js' })
    const factory = await script.run(context, { reference: true })
    await context.global.set('factory', factory.derefInto())
    const run = `(async () => { const exports = await factory(); return JSON.stringify(await (${expression})) })()`
    const text: unknown = await context.eval(run, { promise: true, timeout: 10_000 })
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } finally {
    isolate.dispose()
  }
}
