import { build } from 'esbuild'
import { join } from 'node:path'
import ivm from 'isolated-vm'
import t from 'tap'
import { BODY_KINDS, bundleRuntime, ENTRIES, SAYS, splitScripts } from '@carpool/runtime'
import { Guest, run } from './support/guest.ts'
import { app } from './support/hono-app.ts'

const GLOBALS = {
  function: [
    'AbortController',
    'AbortSignal',
    'CompressionStream',
    'Crypto',
    'CryptoKey',
    'CustomEvent',
    'DOMException',
    'DecompressionStream',
    'Event',
    'EventTarget',
    'FormData',
    'Headers',
    'Performance',
    'ReadableStream',
    'Request',
    'Response',
    'SubtleCrypto',
    'TextDecoder',
    'TextEncoder',
    'TransformStream',
    'URL',
    'URLSearchParams',
    'WritableStream',
    'atob',
    'btoa',
    'clearImmediate',
    'clearInterval',
    'clearTimeout',
    'fetch',
    'queueMicrotask',
    'reportError',
    'setImmediate',
    'setInterval',
    'setTimeout',
    'structuredClone',
  ],
  object: ['console', 'crypto', 'navigator', 'performance', 'process', 'self'],
}

t.test('The globals are there, and named as they should be', (t) => {
  for (const [type, names] of Object.entries(GLOBALS)) {
    t.same(run(`return ${JSON.stringify(names)}.filter((name) => typeof globalThis[name] !== '${type}')`), [])
  }
  t.same(run(`return ${JSON.stringify(GLOBALS.function)}.filter((name) => globalThis[name].name !== name)`), [])
  t.same(run(`return [self === globalThis, navigator.userAgent, Object.keys(process)]`), [true, 'Carpool', ['env']])
  t.end()
})

t.test('What runs or waits outside of entries, is shared, or tells when garbage is collected is not there', (t) => {
  const names = ['ShadowRealm', 'SharedArrayBuffer', 'WebAssembly']
  t.same(
    run(`return ${JSON.stringify(names)}.filter((name) => name in globalThis || eval('typeof ' + name) !== 'undefined')`),
    [],
  )
  t.same(run(`return ['wait', 'waitAsync', 'notify', 'pause'].filter((name) => name in Atomics)`), [])
  t.same(run(`return [WeakRef, FinalizationRegistry].filter((one) => String(one).includes('[native code]'))`), [])
  t.same(
    run(`
      const buffer = new ArrayBuffer(8, { maxByteLength: 16 })
      return [buffer.constructor.name, buffer.slice(0).constructor.name, buffer.transfer().constructor.name, structuredClone(new ArrayBuffer(1)).constructor.name,
        new Uint8Array(1).buffer.constructor.name, (await new Response('a').arrayBuffer()).constructor.name, ArrayBuffer[Symbol.species] === ArrayBuffer]`),
    ['ArrayBuffer', 'ArrayBuffer', 'ArrayBuffer', 'ArrayBuffer', 'ArrayBuffer', 'ArrayBuffer', true],
  )
  t.end()
})

t.test('Array.fromAsync waits in its entry, and hands out nothing of the runtime', (t) => {
  t.same(
    run(`
      const seen = []
      class Own extends Array { constructor(...args) { super(); seen.push(args.length) } }
      const made = await Array.fromAsync.call(Own, { async *[Symbol.asyncIterator]() { yield 1; yield Promise.resolve(2) } })
      return [made instanceof Own, [...made], seen, await Array.fromAsync(new Headers({ a: '1' })), await Array.fromAsync([fetch('http://a/', { signal: AbortSignal.abort() })]).catch((error) => error.name)]`),
    [true, [1, 2], [0], [['a', '1']], 'AbortError'],
  )
  t.end()
})

t.test('Globals can be replaced by user code, lazy ones too', (t) => {
  t.same(run(`fetch = 1; globalThis.ReadableStream = 2; URL = 3; return [fetch, ReadableStream, URL]`), [1, 2, 3])
  t.end()
})

t.test('performance counts from the boot', (t) => {
  t.same(
    run(
      `return [performance.now() >= 0, performance.timeOrigin + performance.now() - Date.now(), performance.toJSON().timeOrigin === performance.timeOrigin]`,
    ),
    [true, 0, true],
  )
  t.end()
})

t.test('Streams pipe and transform', (t) => {
  t.same(
    run(`
      const upper = new TransformStream({ transform(chunk, controller) { controller.enqueue(new TextEncoder().encode(new TextDecoder().decode(chunk).toUpperCase())) } })
      return new Response(new Response('stream').body.pipeThrough(upper)).text()`),
    'STREAM',
  )
  t.end()
})

t.test('The bundle is scripts of ASCII that leave no global behind', async (t) => {
  const code = await bundleRuntime()
  t.notMatch(code, /[^\0-\x7f]/)
  const isolate = new ivm.Isolate({ memoryLimit: 32 })
  const context = isolate.createContextSync()
  const before = context.evalSync(`Object.getOwnPropertyNames(globalThis).join()`) as string
  for (const script of splitScripts(code)) {
    t.equal(isolate.compileScriptSync(script).runSync(context, { reference: true }).typeof, 'function')
  }
  t.equal(context.evalSync(`Object.getOwnPropertyNames(globalThis).join()`), before)
})

t.test('Entries work as the host uses them: asynchronous and ignored', async (t) => {
  const isolate = new ivm.Isolate({ memoryLimit: 64 })
  const context = await isolate.createContext()
  const [core] = splitScripts(await bundleRuntime())
  const boot = await (await isolate.compileScript(core!)).run(context, { reference: true })
  const answered = Promise.withResolvers<unknown[]>()
  const heard = (op: number, ...said: unknown[]): void => {
    if (op === SAYS.answer) answered.resolve(said)
  }
  const say = new ivm.Callback(heard, { ignored: true })
  const entries = await boot.apply(undefined, ['say', say], { result: { reference: true } })
  const factory = await (await isolate.compileScript(`() => ({ default: async () => new Response('hi') })`)).run(context, {
    reference: true,
  })
  const options = { functionName: 'f', revision: 'r', limits: { memoryMb: 64, wallMs: 1000, concurrency: 1 }, env: {} }
  const entry = async (name: 'load' | 'dispatch'): Promise<ivm.Reference> => await entries.get(name as never, { reference: true })
  ;(await entry('load')).applyIgnored(undefined, [JSON.stringify(options), factory.derefInto()] as never[])
  ;(await entry('dispatch')).applyIgnored(undefined, [ENTRIES.invoke, 7, '{}', 0, ''] as never[])
  const head = '{"status":200,"headers":[["content-type","text/plain;charset=UTF-8"]]}'
  t.same(await answered.promise, [7, 0, BODY_KINDS.indexOf('text'), head, 'hi'])
})

t.test('A Hono app answers as it does in Node.js', async (t) => {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'support/hono-app.ts')],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'exported',
  })
  const env = { KEY: 'v' }
  const source = `(() => { ${outputFiles[0]!.text}; return exported })()`
  const guest = new Guest().load(source, { env, handlerExport: 'app' })
  t.same(guest.loaded, { ok: true, form: 'fetch' })
  const requests: [method: string, path: string, contentType?: string, body?: string][] = [
    ['GET', '/'],
    ['GET', '/api/5?q=a%20b'],
    ['OPTIONS', '/api/5'],
    ['POST', '/json', 'application/json', '{"a":1}'],
    ['POST', '/form', 'application/x-www-form-urlencoded', 'a=1&b=2'],
    ['GET', '/html'],
    ['GET', '/go'],
    ['GET', '/teapot'],
    ['GET', '/later'],
    ['GET', '/none'],
  ]
  const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
  for (const [method, path, contentType, body] of requests) {
    const url = `http://localhost:8080${path}`
    const headers: [string, string][] = contentType === undefined ? [] : [['content-type', contentType]]
    const request = new Request(url, { method, headers, ...(body !== undefined && { body }) })
    const expected = await app.fetch(request, env, context)
    const answer = guest.call({ method, url, headers, ...(body !== undefined && { bodyKind: 'text', body }) })
    const sorted = answer.headers.toSorted(([a], [b]) => (a < b ? -1 : 1))
    t.same(
      [answer.status, sorted, answer.body],
      [expected.status, [...expected.headers], await expected.text()],
      `${method} ${path}`,
    )
  }
})

t.test('The seed experiment runs: a UUID at load, a counter, an undeclared variable and a wait', (t) => {
  const guest = new Guest()
  const seed = `(() => {
    const instance = crypto.randomUUID()
    let invocation = 0
    return { handler: async () => {
      total = (typeof total === 'undefined' ? 0 : total) + ++invocation
      await new Promise((resolve) => setTimeout(resolve, 2000))
      return instance.length + ',' + invocation + ',' + total
    } }
  })()`
  guest.load(seed)
  const first = guest.start()
  const second = guest.start()
  t.same([...guest.timers.values()], [2000, 2000])
  guest.fireTimer(2)
  guest.fireTimer(1)
  t.equal(guest.answers.get(second)?.body, '"36,2,3"')
  t.equal(guest.answers.get(first)?.body, '"36,2,3"')
  t.end()
})
