/** Group C2 of the list of attacks: CPU that is ended at its limit. */
import { call } from '../harness/call.ts'
import { scriptOf } from '../harness/compose.ts'
import { deployScript } from '../harness/control.ts'
import { FORM } from '../harness/form.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { peakThreads } from '../harness/process-sample.ts'

const LIMITS = { cpuMs: 100, wallMs: 5_000, memoryMb: 64 }
/** A host has some ten threads, and one for each isolate that is entered. */
const MAX_THREADS = 40
/** Functions that block together. */
const AT_ONCE = FORM.isFull ? 20 : 4
/** A module with a function `f` that loops, imported as bundles do. */
const LOOP = `const { loop } = arguments[0].webAssembly({ loop: 'AGFzbQEAAAABBAFgAAADAgEABwUBAWYAAAoJAQcAA0AMAAsL' })`
const UPSTREAM = 'await (await fetch(env.UPSTREAM)).text();'

/** Ends at its CPU limit, with its isolate. */
function burns(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  const expect = { status: 502, code: 'cpu-exceeded' }
  return { id, group: 'CPU', title, verdict: 'K', billed: 'cap', limits: LIMITS, expect, handler, ...more }
}

/** What is in the way of a loop: code runs after a callback of the host, where a limit of the first call would not reach. */
const CONTINUATIONS: readonly IsolationCase[] = [
  burns('C04a', 'a loop after a timer', 'await new Promise((done) => setTimeout(done, 1)); for (;;);'),
  burns('C04b', 'a loop in the callback of a timer', 'await new Promise(() => setTimeout(() => { for (;;); }, 1))'),
  burns(
    'C04c',
    'a loop in a microtask of a timer',
    'await new Promise(() => setTimeout(() => queueMicrotask(() => { for (;;); }), 1))',
  ),
  burns('C05a', 'a loop after a fetch', `${UPSTREAM} for (;;);`),
  burns('C05b', 'a loop in finally after a fetch', 'await fetch(env.UPSTREAM).finally(() => { for (;;); })'),
  burns(
    'C05c',
    'a loop in for await',
    `async function* tick() { for (;;) { yield 1 } } ${UPSTREAM} for await (const _ of tick());`,
  ),
  burns(
    'C05d',
    'a loop when an async generator is left',
    `async function* tick() { try { yield 1 } finally { for (;;); } } ${UPSTREAM} for await (const _ of tick()) break;`,
  ),
  burns('C05e', 'a loop when a fetch is refused', 'try { await fetch("http://127.0.0.1:1/") } catch { for (;;); }'),
  burns(
    'C05f',
    'a loop in a listener of an abort',
    'AbortSignal.timeout(1).addEventListener("abort", () => { for (;;); }); await new Promise(() => {})',
  ),
]

const LOOPS: readonly IsolationCase[] = [
  burns('C01a', 'an endless loop', 'for (;;);'),
  burns(
    'C01b',
    'an endless loop that grows nothing in a generator',
    'function* turn() { for (;;) yield 1 } for (const _ of turn());',
  ),
  {
    ...burns('C01c', 'an endless loop in a Lambda handler', ''),
    script: `(function () { return { handler(event) { if (event.rawPath.endsWith('/again')) return { statusCode: 200, body: 'seen 0' }; for (;;); } } })`,
  },
  burns(
    'C02a',
    'an endless chain of promises',
    '(function next() { Promise.resolve().then(next) })(); await new Promise(() => {})',
  ),
  burns('C02b', 'an endless chain of await', 'for (;;) await null'),
  burns(
    'C02c',
    'an endless chain of queueMicrotask',
    '(function next() { queueMicrotask(next) })(); await new Promise(() => {})',
  ),
  burns(
    'C03',
    'microtasks that double',
    '(function next() { queueMicrotask(next); queueMicrotask(next) })(); await new Promise(() => {})',
    { expect: { status: 502, code: /^(?:cpu-exceeded|memory-exceeded)$/ } },
  ),
]

const BUILTINS: readonly IsolationCase[] = [
  burns('C07a', 'a regular expression that backtracks', `/(a+)+$/.test('a'.repeat(40) + 'b')`),
  burns(
    'C07b',
    'a regular expression of many alternatives',
    `for (;;) new RegExp(Array.from({ length: 1e5 }, (_, i) => 'a' + i).join('|')).test('b')`,
  ),
  burns(
    'C07c',
    'a lookbehind that backtracks',
    `/(?<=(a+)+)c/.test('a'.repeat(40) + 'b'); for (;;) /(?<=^(a|aa)+)$/.test('a'.repeat(45) + 'b')`,
  ),
  burns('C07d', 'replaceAll with a callback that loops', `'a'.replaceAll('a', () => { for (;;); })`),
  burns('C07e', 'a search for a long needle in a long haystack', `for (;;) 'a'.repeat(2e4).lastIndexOf('a'.repeat(1e4) + 'b')`),
  burns('C09a', 'a JSON.stringify whose toJSON loops', 'JSON.stringify({ toJSON() { for (;;); } })'),
  burns('C09b', 'a JSON.parse whose reviver loops', `JSON.parse('[1]', () => { for (;;); })`),
  burns(
    'C09c',
    'a long list of numbers as JSON, again and again',
    `const text = '[' + '1,'.repeat(3e4) + '1]'; for (;;) JSON.parse(text)`,
    {
      expect: { status: 502, code: /^(?:cpu-exceeded|memory-exceeded)$/ },
    },
  ),
  burns(
    'C09h',
    'lists in lists as JSON, again and again',
    `const text = '[' + '[1],'.repeat(3e4) + '1]'; for (;;) JSON.parse(text)`,
    {
      expect: { status: 502, code: /^(?:cpu-exceeded|memory-exceeded)$/ },
    },
  ),
  burns('C09d', 'a sort whose comparison loops', '[2, 1].sort(() => { for (;;); })'),
  burns(
    'C09e',
    'a sort of much, again and again',
    'const list = Array.from({ length: 3e4 }, (_, i) => (i * 7919) % 1e6); for (;;) list.toSorted()',
  ),
  burns('C09f', 'BigInt powers', 'for (let i = 3n; ; i += 2n) String(i ** 20000n)'),
  burns('C09g', 'dates in every time zone', `for (;;) new Intl.DateTimeFormat('de', { timeZone: 'Asia/Tokyo' }).format(0)`),
]

/** Code of the function that our own code would call, outside of its handler. */
const HOOKS: readonly IsolationCase[] = [
  burns(
    'C14a',
    'an error whose message loops',
    `throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;); } })`,
  ),
  burns('C14b', 'an error whose stack loops', `throw Object.defineProperty(new Error('x'), 'stack', { get() { for (;;); } })`),
  burns('C14c', 'a logged value whose toString loops', 'console.log(`${{ toString() { for (;;); } }}`)'),
  burns(
    'C14d',
    'a logged value whose inspection loops',
    `console.log({ [Symbol.for('nodejs.util.inspect.custom')]() { for (;;); } })`,
  ),
  burns(
    'C14e',
    'a logged proxy whose traps loop',
    'console.log(new Proxy({}, { ownKeys() { for (;;); }, get() { for (;;); } })); return new Response()',
  ),
  burns('C14f', 'a header whose toString loops', `return new Response('', { headers: { a: { toString() { for (;;); } } } })`),
  burns('C14g', 'a body whose reading loops', `return new Response(new ReadableStream({ pull() { for (;;); } }))`),
  burns('C14h', 'Error.prepareStackTrace that loops', `Error.prepareStackTrace = () => { for (;;); }; throw new Error('x')`),
  burns('C14i', 'a thenable whose then loops', 'return { then() { for (;;); } }'),
]

/** The host is to hear of each timer, and the thread waits for it now and then. */
const BLOCKING = 'for (;;) clearTimeout(setTimeout(() => {}, 1e6))'

const REST: readonly IsolationCase[] = [
  {
    id: 'C02d',
    group: 'CPU',
    title: 'a loop beside other calls of the function, which had an effect outside',
    verdict: 'K',
    billed: 'full',
    limits: LIMITS,
    expect: { status: 502, code: /^(?:cpu-exceeded|isolate-lost)$/ },
    handler: `if (request.url.endsWith('/spin')) for (;;); console.log('held'); await new Promise((done) => setTimeout(done, 20000))`,
    attack: async ({ rig, name, call }) => {
      const held = [call('/one'), call('/two')]
      for (let seen = 0; seen < 2; seen++) await rig.server.untilLogged(name, /"msg":"held"/)
      const answers = await Promise.all([call('/spin'), ...held])
      return { answers }
    },
    check: ({ t }, { answers }) => {
      const codes = answers.map(({ path, code }) => `${path.slice(path.lastIndexOf('/'))} ${code}`)
      t.ok(codes.includes('/spin cpu-exceeded'), codes.join())
      t.ok(codes.includes('/one isolate-lost') && codes.includes('/two isolate-lost'), codes.join())
    },
  },
  burns('C08', 'a loop in WebAssembly', 'new WebAssembly.Instance(loop).exports.f()', { scope: LOOP }),
  {
    id: 'C13',
    group: 'CPU',
    title: 'a thousand short calls with the same deadline',
    verdict: 'OK',
    billed: 'full',
    limits: { wallMs: 10_000 },
    handler: 'return new Response(await new Promise((done) => setTimeout(done, 20, "done")))',
    isRepeatable: false,
    attack: async ({ call }) => ({ answers: await Promise.all(Array.from({ length: 1000 }, () => call('/'))) }),
  },
  {
    id: 'C15',
    group: 'CPU',
    title: 'a loop in a finalizer',
    verdict: 'R',
    billed: 'full',
    handler: `
      let called = 0
      const registry = new FinalizationRegistry(() => { called++; for (;;); })
      const weak = new WeakRef({})
      let kept
      for (let round = 0; round < 20; round++) {
        for (let index = 0; index < 1e3; index++) registry.register({}, index)
        kept = Array.from({ length: 1e5 }, (_, index) => ({ index }))
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      return new Response(kept.length + ' ' + called + typeof weak.deref())`,
    expect: { body: '100000 0object' },
  },
  {
    id: 'C20',
    group: 'CPU',
    title: 'calls that take just less than their limit, one after the other, without a pause',
    verdict: 'OK',
    billed: 'full',
    limits: { cpuMs: 400 },
    handler: 'let x = 0; for (let i = 0; i < 20_000_000; i++) x = (x * 31 + i) | 0; return new Response(String(x))',
    attack: async ({ call }) => {
      const answers = []
      for (let turn = 0; turn < 5; turn++) answers.push(await call())
      return { answers }
    },
  },
  {
    id: 'C19',
    group: 'CPU',
    title: `${AT_ONCE} functions that wait for the host in blocking calls`,
    verdict: 'K',
    billed: 'cap',
    limits: LIMITS,
    handler: BLOCKING,
    isRepeatable: false,
    expect: { code: /^(?:cpu-exceeded|timeout)$/ },
    attack: async ({ t, rig, name, call: own }) => {
      const others = Array.from({ length: AT_ONCE - 1 }, (_, index) => `${name}-${index}`)
      for (const other of others) await deployScript(rig.server, other, { code: scriptOf({ handler: BLOCKING }), limits: LIMITS })
      const calls = [own(), ...others.map((other) => call(`${rig.server.url}/${other}/`))]
      const { pid } = await rig.host()
      const most = await peakThreads(pid, Promise.all(calls))
      t.ok(most <= MAX_THREADS, `${most} threads`)
      const [answer, ...rest] = await Promise.all(calls)
      for (const { code } of rest) t.match(code, /^(?:cpu-exceeded|timeout)$/)
      return { answers: answer === undefined ? [] : [answer] }
    },
  },
]

export const CPU_CASES: readonly IsolationCase[] = [...LOOPS, ...CONTINUATIONS, ...REST]
export const CPU_BUILTIN_CASES: readonly IsolationCase[] = [...BUILTINS, ...HOOKS]
