/** Group C3 of the list of attacks: memory that ends the isolate, or is not given. */
import { mostMb } from './memory-at-once.ts'
import { call } from '../harness/call.ts'
import { deployScript } from '../harness/control.ts'
import { FORM } from '../harness/form.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { sampleProcess } from '../harness/process-sample.ts'

const LIMITS = { memoryMb: 32, cpuMs: 5_000, wallMs: 20_000 }
/** Functions that take all they can together. */
const AT_ONCE = FORM.isFull ? 20 : 4
/** What a host may take more than before while a function passes its limit, in MiB. */
const MAX_GROWTH_MB = mostMb(LIMITS.memoryMb)

/** Takes more outside of the heap than in it. */
const DATES = 'const kept = []; for (;;) kept.push(new Temporal.PlainDate(2020, 1, 1))'
const NOTHING = `(function () { return { default: { fetch() { return new Response('nothing') } } } })`
/** What a host may have left of it, in MiB, however often: without more than one of those that were ended. */
const MAX_LEFT_MB = 100

/** Passes its memory limit, and ends with its isolate. */
function hoards(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  const expect = { status: 502, code: 'memory-exceeded' }
  return { id, group: 'memory', title, verdict: 'K', billed: 'full', limits: LIMITS, expect, handler, check: checkPeak, ...more }
}

const checkPeak: NonNullable<IsolationCase['check']> = ({ t }, { growthMb = 0 }) => {
  t.ok(growthMb < MAX_GROWTH_MB, `the host took ${Math.round(growthMb)} MiB more at most`)
}

/** Not even that. */
const MAX_PETTY_MB = 150

const checkPetty: NonNullable<IsolationCase['check']> = ({ t }, { growthMb = 0 }) => {
  t.ok(growthMb < MAX_PETTY_MB, `the host took ${Math.round(growthMb)} MiB more at most`)
}

/** A module with a memory `m` of one page that may grow, imported as bundles do. */
const MODULE = `const { module } = arguments[0].webAssembly({ module: 'AGFzbQEAAAAFAwEAAQcFAQFtAgA=' })`

/** What V8 refuses with an error that the function sees. */
function denied(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  const seen = `try { ${handler} } catch (error) { return new Response(error.name) } return new Response('given')`
  return hoards(id, title, seen, { verdict: 'R', expect: { status: 200, body: 'RangeError' }, ...more })
}

const HEAPS: readonly IsolationCase[] = [
  hoards('M01a', 'objects without end', 'const kept = []; for (;;) kept.push({})'),
  hoards('M01b', 'numbers without end', 'const kept = []; for (;;) kept.push(kept.length * 1.5)'),
  hoards('M01c', 'texts without end', `const kept = []; for (;;) kept.push('x'.repeat(1000) + kept.length)`),
  hoards('M01d', 'a Map without end', 'const kept = new Map(); for (let i = 0; ; i++) kept.set(i, {})'),
  hoards('M01e', 'functions without end', `const kept = []; for (;;) kept.push(new Function('return ' + kept.length))`),
  hoards('M01f', 'keys of an object without end', 'const kept = {}; for (let i = 0; ; i++) kept["k" + i] = i'),
  hoards('M01g', 'symbols without end', 'const kept = []; for (;;) kept.push(Symbol(String(kept.length)))'),
  hoards(
    'M01h',
    'a text that doubles',
    `let text = 'x'.repeat(100); const kept = []; for (;;) { kept.push([...text]); text += text.slice(0, 1e5) }`,
  ),
  hoards(
    'M02c',
    'copies without end',
    'const kept = []; for (;;) kept.push(structuredClone({ a: [1, 2, 3], b: "x".repeat(100) }))',
  ),
  hoards('M03g', 'a text of a hundred million spread into an array', `[...'.'.repeat(1e8)]`, { mayPoison: true }),
  // One step asks for more than the stock, which costs the host: M03f has what comes of it again and again.
  hoards('M03h', 'a text of 50 million split into characters', `'1'.repeat(0x2ffffff).split('')`, {
    mayPoison: true,
    isRepeatable: false,
  }),
  hoards('M03i', 'a text of 33 million split by a pattern', `'1'.repeat(0x1ffffff).split(/./)`),
  hoards(
    'M07a',
    'promises without end that never settle',
    'const kept = []; for (;;) kept.push(new Promise(() => {}).then(() => {}))',
  ),
  hoards('M07b', 'rejected promises without end', 'const kept = []; for (;;) kept.push(Promise.reject(1))'),
  hoards('M07c', 'microtasks without end', 'for (;;) queueMicrotask(() => {})'),
  // Each has more outside of the heap than in it, in small pieces.
  hoards('M20a', 'dates of Temporal without end', DATES, { check: checkPetty }),
  hoards('M20b', 'buffers of no bytes without end', 'const kept = []; for (;;) kept.push(new ArrayBuffer(0))', {
    check: checkPetty,
  }),
  // V8 compiles them on threads of its own.
  hoards('M20c', 'large functions that V8 makes faster', 'for (;;) for (const one of large) one(numbers)', {
    scope: `
      const lines = Array.from({ length: 800 }, (_, j) => 'n = (n * ' + (j + 3) + ' + a[' + (j & 7) + ']) | 0; if (n > ' + j + ') n ^= a[n & 7];')
      const large = Array.from({ length: 20 }, (_, i) => new Function('a', 'let n = ' + i + '; ' + lines.join('') + 'return n'))
      const numbers = [1, 2, 3, 4, 5, 6, 7, 8]`,
    limits: { ...LIMITS, memoryMb: 64, cpuMs: 5_000 },
    expect: { code: 'cpu-exceeded' },
    check: checkPetty,
  }),
]

const BUFFERS: readonly IsolationCase[] = [
  denied('M02a', 'buffers without end', 'const kept = []; for (;;) kept.push(new Uint8Array(2 ** 20))'),
  denied(
    'M02b',
    'a buffer that grows',
    'const buffer = new ArrayBuffer(0, { maxByteLength: 2 ** 28 }); for (let size = 0; ; size += 2 ** 24) { buffer.resize(size); new Uint8Array(buffer).fill(1) }',
    { check: checkPetty },
  ),
  denied(
    'M02g',
    'buffers that can grow',
    'const kept = []; for (let i = 0; i < 4; i++) { const buffer = new ArrayBuffer(0, { maxByteLength: 2 ** 27 }); buffer.resize(2 ** 27); new Uint8Array(buffer).fill(1); kept.push(buffer) }',
    { check: checkPetty },
  ),
  denied('M02i', 'a buffer that is moved into a larger one', 'new ArrayBuffer(1).transfer(2 ** 28)', { check: checkPetty }),
  denied(
    'M02h',
    'formatters of dates without end',
    `const kept = []; for (;;) kept.push(new Intl.DateTimeFormat('de', { timeZone: 'Asia/Tokyo' }))`,
    // So close to its limit, the isolate may be given no more calls.
    { check: checkPetty, again: 'any' },
  ),
  denied(
    'M02j',
    'iterators of segments without end',
    `const kept = []; const cut = new Intl.Segmenter('en').segment('x'.repeat(1e5)); for (;;) kept.push(cut[Symbol.iterator]())`,
    { check: checkPetty, again: 'any' },
  ),
  hoards('M02k', 'dates as local texts without end', `for (;;) new Date(0).toLocaleString('de', { timeZone: 'Asia/Tokyo' })`, {
    limits: { ...LIMITS, cpuMs: 500 },
    expect: { code: 'cpu-exceeded' },
    check: checkPetty,
  }),
  denied(
    'M05',
    'memories of WebAssembly without end',
    'const kept = []; for (;;) { const { m } = new WebAssembly.Instance(module).exports; while (true) try { m.grow(1) } catch { break } new Uint8Array(m.buffer).fill(1); kept.push(m) }',
    { scope: MODULE, check: checkPetty, again: 'any' },
  ),
  denied('M02d', 'a buffer of two gigabytes', 'new ArrayBuffer(2 ** 31)'),
  denied('M02e', 'a text of more than V8 can hold', `'x'.repeat(2 ** 30)`),
  denied(
    'M02f',
    'random bytes without end',
    'const kept = []; for (;;) kept.push(crypto.getRandomValues(new Uint8Array(65536)))',
    { again: 'any' },
  ),
]

/** Fills most of the heap, and then gets more from outside. */
const FILL = 'const kept = []; for (let i = 0; i < 22; i++) kept.push(new Array(131072).fill(i + 0.5)); globalThis.kept = kept;'

/** Leaves buffers of three megabytes: for the parts of a body of two and a half, but not for all of it in one piece. */
const LEAVE_3_MB = `globalThis.kept = []; try { for (;;) kept.push(new Uint8Array(2 ** 20)) } catch {} kept.length -= 3;`

/** Where there is no room for the whole of a body that streams, that is an error, which the function may catch. */
const REFUSED_OR_ENDED = { expect: { code: /^(?:memory-exceeded|exception)$/ }, again: 'any' } as const

const FROM_OUTSIDE: readonly IsolationCase[] = [
  hoards(
    'M06a',
    'a response of 20 MB into a heap that is nearly full',
    `${FILL} const all = []; for (;;) all.push(await (await fetch(env.UPSTREAM + 'bytes/5000000')).text())`,
    REFUSED_OR_ENDED,
  ),
  hoards(
    'M06b',
    'a request of 5 MB into a heap that is nearly full',
    `${FILL} const text = await request.text(); const all = []; for (;;) all.push(text.split(''))`,
    {
      request: { method: 'POST', body: 'x'.repeat(5_000_000) },
      ...REFUSED_OR_ENDED,
    },
  ),
  hoards(
    'M06c',
    'requests of 5 MB that are kept',
    `(globalThis.bodies ??= []).push(await request.arrayBuffer()); return new Response('kept')`,
    {
      expect: { code: /^(?:|memory-exceeded|exception)$/ },
      again: 'any',
      isRepeatable: false,
      attack: async ({ call: own }) => {
        const answers = []
        for (let turn = 0; turn < 10; turn++) answers.push(await own('/', { method: 'POST', body: new Uint8Array(5_000_000) }))
        return { answers }
      },
    },
  ),
  denied(
    'M06e',
    'a response that has come and does not fit in one piece',
    `const response = await fetch(env.UPSTREAM + 'bytes/2500000'); ${LEAVE_3_MB} await response.text()`,
    { check: checkPetty, again: 'any' },
  ),
  denied('M06f', 'a request that has come and does not fit in one piece', `${LEAVE_3_MB} await request.text()`, {
    request: { method: 'POST', body: 'x'.repeat(2_500_000) },
    check: checkPetty,
    again: 'any',
  }),
  hoards('M06d', 'an environment of thirty kilobytes, copied', 'const all = []; for (;;) all.push(env.BIG.split(""))', {
    env: { BIG: 'x'.repeat(30_000) },
  }),
]

const REST: readonly IsolationCase[] = [
  hoards('M01i', 'objects without end beside other calls of the function, which had an effect outside', '', {
    handler: `if (request.url.endsWith('/hoard')) { const kept = []; for (;;) kept.push({}) } console.log('held'); await new Promise((done) => setTimeout(done, 20000))`,
    expect: { status: 502, code: /^(?:memory-exceeded|isolate-lost)$/ },
    attack: async ({ rig, name, call: own }) => {
      const held = [own('/one'), own('/two')]
      for (let seen = 0; seen < 2; seen++) await rig.server.untilLogged(name, /"msg":"held"/)
      return { answers: await Promise.all([own('/hoard'), ...held]) }
    },
    isRepeatable: false,
  }),
  {
    id: 'M08',
    group: 'memory',
    // Memory is looked at after each 20 ms of CPU, in which so much may come: the soft limit must be far enough below the hard
    // one.
    title: 'a leak of two megabytes in each of a hundred and fifty calls',
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, memoryMb: 192 },
    handler: '(globalThis.leaked ??= []).push(new Array(2 ** 18).fill(1.5)); return new Response("fine")',
    again: 'any',
    isRepeatable: false,
    attack: async ({ call: own }) => {
      const answers = []
      for (let turn = 0; turn < 150; turn++) answers.push(await own())
      return { answers }
    },
  },
  hoards('M10', `${AT_ONCE} functions that pass their limit at the same time`, 'const kept = []; for (;;) kept.push({ a: 1 })', {
    isRepeatable: false,
    attack: async ({ t, rig, name, call: own }) => {
      const code = '(function () { return { default: { fetch() { const kept = []; for (;;) kept.push({ a: 1 }) } } } })'
      const names = Array.from({ length: AT_ONCE - 1 }, (_, index) => `${name}-${index}`)
      await Promise.all(names.map((other) => deployScript(rig.server, other, { code, limits: LIMITS })))
      const [answer, ...rest] = await Promise.all([own(), ...names.map((other) => call(`${rig.server.url}/${other}/`))])
      for (const { code: got } of rest) t.equal(got, 'memory-exceeded')
      return { answers: answer === undefined ? [] : [answer] }
    },
    check: ({ t }, { growthMb = 0 }) => {
      t.ok(growthMb < mostMb(AT_ONCE * LIMITS.memoryMb), `the host took ${Math.round(growthMb)} MiB more at most`)
    },
  }),
  hoards('M11a', 'long texts into the log without a pause', `const text = 'x'.repeat(4_000_000); for (;;) console.log(text)`, {
    limits: { ...LIMITS, cpuMs: 1_000 },
    billed: 'cap',
    expect: { status: 502, code: 'cpu-exceeded' },
  }),
  hoards(
    'M11b',
    'long bodies into fetch without a pause',
    `const body = 'x'.repeat(4_000_000); for (;;) fetch(env.UPSTREAM, { method: 'POST', body }).catch(() => {})`,
    {
      limits: { ...LIMITS, cpuMs: 1_000, wallMs: 3_000 },
      billed: 'cap',
      expect: { code: /^(?:cpu-exceeded|timeout|memory-exceeded)$/ },
    },
  ),
  hoards(
    'M11d',
    'long bodies into fetch that are stopped at once',
    `const body = 'x'.repeat(4_000_000)
     for (;;) { const stop = new AbortController(); fetch(env.UPSTREAM, { method: 'POST', body, signal: stop.signal }).catch(() => {}); stop.abort() }`,
    {
      limits: { ...LIMITS, cpuMs: 1_000, wallMs: 3_000 },
      billed: 'cap',
      expect: { code: /^(?:cpu-exceeded|timeout|memory-exceeded)$/ },
    },
  ),
  {
    id: 'M14',
    group: 'memory',
    title: 'ten kills in a row',
    verdict: 'K',
    billed: 'full',
    limits: LIMITS,
    handler: 'const kept = []; for (;;) kept.push({})',
    expect: { code: 'memory-exceeded' },
    isRepeatable: false,
    attack: async ({ t, rig, call: own }) => {
      const { pid } = await rig.host()
      const answers = []
      for (let turn = 0; turn < 5; turn++) answers.push(await own())
      const beforeMb = sampleProcess(pid)?.residentMb ?? 0
      for (let turn = 0; turn < 5; turn++) answers.push(await own())
      const afterMb = sampleProcess(pid)?.residentMb ?? 0
      t.ok(afterMb < beforeMb + 200, `${Math.round(beforeMb)} MiB after five, ${Math.round(afterMb)} MiB after ten`)
      return { answers }
    },
  },
]

/** Each may run on another thread, which keeps what is freed there. */
const AGAIN_AND_AGAIN = hoards('M20d', 'dates of Temporal without end, six times', DATES, {
  isRepeatable: false,
  check: checkPetty,
  attack: async ({ t, rig, name, call: own }) => {
    const { pid } = await rig.host()
    const beforeMb = sampleProcess(pid)?.residentMb ?? 0
    const answers = []
    for (let turn = 0; turn < 6; turn++) answers.push(await own())
    // The next isolate is made when the last one is taken down.
    await deployScript(rig.server, `${name}-next`, { code: NOTHING })
    const afterMb = sampleProcess(pid)?.residentMb ?? 0
    t.ok(afterMb < beforeMb + MAX_LEFT_MB, `${Math.round(beforeMb)} MiB before, ${Math.round(afterMb)} MiB after`)
    return { answers }
  },
})

/** Limits that are no limits are refused at the deploy. */
const CONFIG = (
  [
    ['M16a', 0],
    ['M16b', 7],
    ['M16c', 1e9],
    ['M16d', 8.5],
    ['M16e', -1],
    ['M16f', 128 * 1024 * 1024],
  ] as const
).map(
  ([id, memoryMb]): IsolationCase => ({
    id,
    group: 'memory',
    title: `a memory limit of ${memoryMb} MiB`,
    verdict: 'R',
    billed: 'none',
    limits: { memoryMb },
    refused: { status: 400, code: /^(?:invalid-config|bad-request)$/, detail: /memoryMb|memory/ },
  }),
)

const SKIPPED: readonly IsolationCase[] = [
  skipped(
    'M13',
    'shared memory that outlives its isolate',
    'Only primitives cross, and there is no SharedArrayBuffer, which E21 shows.',
  ),
  skipped('M15', 'contexts without end', 'A function has one context for as long as its isolate lives.'),
]

function skipped(id: string, title: string, skip: string): IsolationCase {
  return { id, group: 'memory', title, verdict: 'R', billed: 'none', skip }
}

export const MEMORY_CASES: readonly IsolationCase[] = [...HEAPS, ...BUFFERS]
export const MEMORY_LIMIT_CASES: readonly IsolationCase[] = [...FROM_OUTSIDE, ...REST, AGAIN_AND_AGAIN, ...CONFIG, ...SKIPPED]
