import ivm from 'isolated-vm'
import '../../../../test/support/own-exit.ts'
import { addonOf, NATIVES, RUNTIME } from '../../../runtime/test/support/guest.ts'

/** Timers fire at once, and a variable is set. */
const GLOBALS = `
  globalThis.process.env.GREETING = 'hi'
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
    const { boot, natives } = addonOf(context)
    const callbacks = [() => 0, () => {}].map((callback) => new ivm.Callback(callback))
    const given = [RUNTIME, ['drain,say', ...NATIVES].join(','), ...callbacks, ...natives.map((one) => one.derefInto())]
    await boot.apply(undefined, given, { result: { reference: true } })
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
