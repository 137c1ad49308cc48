/** Group C1 of the list of attacks, second half: values that the runtime has to take. */
import { readLog } from '../harness/control.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { fails, lambda } from './escape-answers.ts'
import { finds } from './escape-reach.ts'

const LIMITS = { cpuMs: 2_000, wallMs: 20_000, memoryMb: 64 }

/** What a log line must be, whatever a function writes. */
const oneLine: NonNullable<IsolationCase['check']> = async ({ t, rig, name }, { answers }) => {
  const id = answers[0]?.id ?? ''
  await rig.server.untilLogged(name, new RegExp(id))
  const lines = (await readLog(rig.server, name)).filter(
    ({ invocationId, msg }) => invocationId === id && !msg.startsWith('report:'),
  )
  t.equal(lines.length, 1, 'one line')
  t.ok((lines[0]?.msg.length ?? 0) < 30_000, 'of bounded length')
}

const THROWN: readonly IsolationCase[] = [
  fails('E13a', 'an error whose message loops', `throw { __proto__: Error.prototype, get message() { for (;;); } }`, {
    verdict: 'K',
    billed: 'cap',
    limits: { ...LIMITS, cpuMs: 100 },
    expect: { code: 'cpu-exceeded' },
  }),
  fails('E13b', 'an error whose toString loops', `throw { toString() { for (;;); }, [Symbol.toPrimitive]() { for (;;); } }`, {
    expect: { code: 'exception' },
  }),
  fails(
    'E13c',
    'an error whose properties throw',
    `throw new Proxy(new Error('x'), { get() { throw new Error('y') }, getPrototypeOf() { throw new Error('z') } })`,
  ),
  fails('E13d', 'undefined', 'throw undefined'),
  fails(
    'E13e',
    'an error of the runtime, changed',
    `try { new URL('x') } catch (error) { error.stack = 'at Object.<anonymous> (' + 'a'.repeat(1e6) + ')'; error.cause = error; throw error }`,
  ),
  fails('E17a', 'an error with a message of ten megabytes', `throw new Error('x'.repeat(1e7))`, { check: oneLine }),
  fails('E17b', 'an error whose message is a log line', `throw new Error('a\\n{"level":"info","msg":"forged"}\\n')`, {
    check: oneLine,
  }),
  fails(
    'E17c',
    'an error with escapes, separators, zeros and halves of characters',
    `throw new Error('\\x1b[31m\\u2028\\u2029\\0\\ud800\\r\\n\\x07')`,
    { check: oneLine },
  ),
  fails(
    'E17d',
    'a log line with all of these',
    `console.log('\\x1b]0;title\\x07\\u2028\\u2029\\0\\ud800\\r\\n{"forged":1}'); return new Response('fine')`,
    {
      verdict: 'OK',
      expect: { body: 'fine' },
      check: oneLine,
    },
  ),
]

const DEEP: readonly IsolationCase[] = [
  fails(
    'E23a',
    'JSON that is nested a million deep',
    `const text = '['.repeat(1e6) + ']'.repeat(1e6); let failed = ''; try { JSON.parse(text) } catch (error) { failed = error.name } return new Response('fine')`,
    {
      verdict: 'OK',
      expect: { body: 'fine' },
      // What is left of it may be so much that the isolate is given up for a new one.
      again: 'any',
    },
  ),
  fails('E23b', 'an answer that is nested a million deep', '', {
    script: lambda('let deep = {}; for (let i = 0; i < 1e6; i++) deep = { deep }; return deep'),
    // V8 may be able to write it.
    expect: { code: /^(?:|invalid-response|exception|memory-exceeded)$/ },
    again: 'any',
  }),
  fails(
    'E23c',
    'a request that is nested a million deep',
    'let failed = "fine"; try { await request.json() } catch (error) { failed = error.name } return new Response("fine")',
    {
      request: { method: 'POST', body: '['.repeat(1e6), headers: { 'content-type': 'application/json' } },
      verdict: 'OK',
      expect: { body: 'fine' },
      again: 'any',
    },
  ),
]

/** Every function of the runtime, with arguments that it cannot use. */
const ARGUMENTS = finds(
  'E15',
  'errors of the runtime that say something of the host',
  `
  const detached = new ArrayBuffer(8), gone = new Uint8Array(detached); structuredClone(detached, { transfer: [detached] })
  const { proxy, revoke } = Proxy.revocable({}, {}); revoke()
  const cyclic = {}; cyclic.a = cyclic
  const values = [undefined, null, 0, -1, NaN, 1e308, 10n, 'x', '', 'x'.repeat(1e5), '\\0', Symbol('x'), {}, [], cyclic, () => {}, detached, gone, proxy, new Date(NaN), /x/, new Map(),
    { toString() { throw new Error('mine') } }, { get a() { throw new Error('mine') } }, Object.create(null), new Error('x'), Promise.resolve(1), globalThis]
  const names = ['fetch', 'setTimeout', 'setInterval', 'clearTimeout', 'queueMicrotask', 'structuredClone', 'atob', 'btoa', 'reportError', 'URL', 'URLSearchParams', 'Headers', 'Request', 'Response', 'TextDecoder', 'AbortController', 'Event', 'FormData', 'DOMException']
  const judge = (name, error) => {
    let text = ''
    try { text = String(error) + ' ' + String(error?.stack) } catch { return }
    if (/node:|node_modules|\\/host\\/|isolated|\\.ts:|\\/work|\\/home|\\/usr/.test(text)) found.push(name + ': ' + text.slice(0, 200))
  }
  for (const name of names) for (const a of values) for (const b of [undefined, {}, null, 5, proxy, cyclic]) {
    const target = globalThis[name]
    for (const attempt of [() => target(a, b), () => new target(a, b)]) try { const made = attempt(); if (made?.catch) made.catch((error) => judge(name, error)) } catch (error) { judge(name, error) }
  }
  for (const [object, keys] of [[crypto, ['getRandomValues', 'randomUUID']], [console, ['log', 'table', 'dir', 'count', 'assert']], [new Headers(), ['get', 'set', 'append']], [new URLSearchParams(), ['get', 'set', 'sort']], [request, ['clone', 'text']], [AbortSignal, ['timeout', 'any', 'abort']], [ctx, ['waitUntil', 'passThroughOnException']]])
    for (const key of keys) for (const a of values) for (const b of [undefined, cyclic]) try { object[key]?.(a, b)?.catch?.((error) => judge(key, error)) } catch (error) { judge(key, error) }
  await new Promise((done) => setTimeout(done, 20))`,
  // What was started with odd callbacks may throw later.
  { again: 'any', limits: { ...LIMITS, cpuMs: 10_000 } },
)

const BUFFERS = finds(
  'E22',
  'buffers that shrink or go while they are read',
  `
  const growing = new ArrayBuffer(64, { maxByteLength: 1024 })
  const views = [new Uint8Array(growing), new Uint8Array(growing, 8), new DataView(growing), new Float64Array(new ArrayBuffer(64)), new Uint8Array(0)]
  const uses = [(v) => new TextDecoder().decode(v), (v) => new Response(v).text(), (v) => crypto.getRandomValues(v), (v) => fetch(env.UPSTREAM, { method: 'POST', body: v }), (v) => structuredClone(v), (v) => console.log(v), (v) => new TextEncoder().encodeInto('xx', v), (v) => new Request('http://a', { method: 'POST', body: v }).arrayBuffer()]
  for (const use of uses) for (const view of views) {
    try { growing.resize(64) } catch {}
    const pending = []
    try { pending.push(use(view)) } catch {}
    growing.resize(4)
    try { pending.push(use(view)) } catch {}
    await Promise.allSettled(pending)
  }
  const gone = new ArrayBuffer(64); const view = new Uint8Array(gone)
  const read = new Response(view).arrayBuffer(); gone.transfer()
  if ((await read).byteLength !== 64) found.push('a body changed after it was given')
  for (const use of uses) try { await use(view) } catch {}`,
  { again: 'any' },
)

const MEMORY_SIZED: readonly IsolationCase[] = [
  fails(
    'E20a',
    'eval of sixteen megabytes',
    `try { eval('/*' + 'x'.repeat(2 ** 24) + '*/ 1') } catch (error) { return new Response(error.name) } return new Response('fine')`,
    {
      verdict: 'R',
      expect: { body: /^(?:fine|EvalError|RangeError)$/ },
    },
  ),
  fails(
    'E20b',
    'code in the place of a callback',
    `let ran = false; globalThis.run = () => { ran = true }; try { setTimeout('run()', 1) } catch {} await new Promise((done) => setTimeout(done, 20)); return new Response(String(ran))`,
    {
      verdict: 'R',
      expect: { body: 'false' },
    },
  ),
  fails(
    'E20c',
    'import() of the host',
    `const found = []; for (const name of ['node:fs', 'fs', 'file:///etc/passwd', 'data:text/javascript,export default 1', 'isolated-vm']) try { await new Function('name', 'return import(name)')(name); found.push(name) } catch (error) { if (/node:internal|\\//.test(error.message.replace(name, ''))) found.push(error.message) } return new Response(JSON.stringify(found))`,
    {
      verdict: 'R',
      expect: { body: '[]' },
    },
  ),
]

export const ESCAPE_VALUE_CASES: readonly IsolationCase[] = [...THROWN, ...DEEP, ARGUMENTS, BUFFERS, ...MEMORY_SIZED]
