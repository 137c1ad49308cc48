/**
 * Group C1 of the list of attacks: what one call leaves for another, what time tells, and source that would be more than a
 * function.
 */
import { runs } from '../../support/form.ts'
import { deployScript } from '../harness/control.ts'
import { call } from '../harness/call.ts'
import type { CaseContext, IsolationCase } from '../harness/isolation-case.ts'
import { finds } from './escape-reach.ts'

const LIMITS = { cpuMs: 2_000, wallMs: 20_000, memoryMb: 64 }

/** Leaves marks wherever it can, and says which it finds. */
const MARKING = `(function () {
  let module = 'clean'
  return { default: { async fetch(request) {
    const { pathname } = new URL(request.url)
    const marks = [module, String(globalThis.mark), String([].mark), String(console.mark), String(Response.mark)]
    if (pathname.endsWith('/loop')) for (;;);
    if (pathname.endsWith('/mark')) { module = 'dirty'; globalThis.mark = Array.prototype.mark = console.mark = Response.mark = 'dirty' }
    return new Response(marks.join())
  } } }
})`
const CLEAN = 'clean,undefined,undefined,undefined,undefined'
const DIRTY = 'dirty,dirty,dirty,dirty,dirty'

const read = async ({ call: own }: CaseContext): Promise<string> => (await own('/read', {})).text

const STATE: readonly IsolationCase[] = [
  {
    id: 'E28',
    group: 'escape',
    title: 'marks that a call leaves, read by other calls, functions, revisions and after a kill',
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 100 },
    script: MARKING,
    request: { path: '/mark' },
    expect: { body: CLEAN },
    again: 'skipped',
    isRepeatable: false,
    check: async (context) => {
      const { t, rig, name } = context
      const other = `${name}-other`
      await deployScript(rig.server, other, { code: MARKING })
      t.equal(await read(context), DIRTY, 'the same revision in the same isolate sees them')
      t.equal((await call(`${rig.server.url}/${other}/read`)).text, CLEAN, 'another function does not')
      await deployScript(rig.server, name, { code: MARKING, limits: { ...LIMITS, cpuMs: 101 } })
      t.equal(await read(context), CLEAN, 'the next revision does not')
      await context.call('/mark', {})
      t.equal(await read(context), DIRTY)
      t.equal((await context.call('/loop', {})).code, 'cpu-exceeded')
      t.equal(await read(context), CLEAN, 'nor does the isolate that comes after a kill')
    },
  },
  {
    id: 'E29',
    group: 'escape',
    title: 'objects of a call, changed, kept and read by the next',
    verdict: 'OK',
    billed: 'full',
    limits: LIMITS,
    scope: 'let kept, signal;',
    handler: `const before = kept; kept = request; const number = request.headers.get('x-number')
      const shared = before !== undefined && (before === request || before.headers === request.headers || before.signal === request.signal || ctx === globalThis.keptContext)
      globalThis.keptContext = ctx; request.mark = number; const old = before?.headers.get('x-number') ?? 'none'
      return new Response([shared, request.headers.get('x-left'), old].join())`,
    attack: async ({ call: own }) => ({
      answers: [
        await own('/', { headers: { 'x-number': '1', 'x-left': 'mine' } }),
        await own('/', { headers: { 'x-number': '2' } }),
      ],
    }),
    expect: { body: /^false,(?:mine,none|,1)$/ },
    isRepeatable: false,
  },
  {
    id: 'E30a',
    group: 'escape',
    title: 'names of what all objects have, in body, query, headers and cookies',
    verdict: 'OK',
    billed: 'full',
    limits: LIMITS,
    handler: `const body = await request.json(); const { searchParams } = new URL(request.url); const form = Object.fromEntries(searchParams)
      Object.assign({}, body, form, Object.fromEntries(request.headers)); structuredClone(body)
      return new Response(JSON.stringify([{}.polluted, [].polluted, globalThis.polluted, Object.keys(env).includes('__proto__')]))`,
    request: {
      path: '/?__proto__[polluted]=1&constructor[prototype][polluted]=1&__proto__=polluted',
      method: 'POST',
      body: '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
      headers: [
        ['__proto__', 'polluted'],
        ['constructor', 'polluted'],
        ['cookie', '__proto__=polluted; __proto__.polluted=1'],
      ],
    },
    expect: { body: /^\[null,null,null,(?:true|false)\]$/ },
    check: async ({ t, rig, name }) => {
      const other = `${name}-other`
      await deployScript(rig.server, other, {
        code: `(function () { return { default: { fetch: () => new Response(String({}.polluted)) } } })`,
      })
      t.equal((await call(`${rig.server.url}/${other}/`)).text, 'undefined')
    },
  },
]

const TIME: readonly IsolationCase[] = [
  finds(
    'E32a',
    'the time that passes in a loop',
    `
    const clocks = { now: () => Date.now(), date: () => +new Date(), text: () => Date(), performance: () => performance.now(), event: () => new Event('x').timeStamp,
      intl: () => new Intl.DateTimeFormat('en', { fractionalSecondDigits: 3, second: 'numeric' }).format(), temporal: () => typeof Temporal === 'object' ? Temporal.Now.instant().epochNanoseconds : 0n, zone: () => typeof Temporal === 'object' ? String(Temporal.Now.plainDateTimeISO()) : '' }
    const burn = () => { let x = 0; for (let i = 0; i < 3e6; i++) x = (x * 31 + i) | 0; globalThis.x = x }
    for (const name of Object.keys(clocks)) { const before = clocks[name](); burn(); if (clocks[name]() !== before) found.push(name) }
    const before = Date.now(); await new Promise((done) => setTimeout(done, 20)); if (Date.now() <= before) found.push('it stands still for good')`,
  ),
  finds(
    'E32b',
    'the time that a microtask or a blocking call takes',
    `
    const before = performance.now(); for (let i = 0; i < 1000; i++) await null; for (let i = 0; i < 1e4; i++) clearTimeout(setTimeout(() => {}, 1e6))
    if (performance.now() !== before) found.push('performance.now')
    console.time('x'); let x = 0; for (let i = 0; i < 3e6; i++) x = (x * 31 + i) | 0; console.timeEnd('x'); globalThis.x = x`,
  ),
]

function refused(id: string, title: string, script: string): IsolationCase {
  return {
    id,
    group: 'escape',
    title,
    verdict: 'R',
    billed: 'none',
    script,
    limits: { ...LIMITS, wallMs: 500 },
    refused: { status: 422, code: /^(?:load-failed|no-handler)$/ },
  }
}

const SERVED = `export default { fetch(request) { return new Response(String(globalThis.pwn) + (request.url.endsWith('/again') ? '' : typeof require)) } }`

/** Deployed by the command: the bundler takes it first. */
function source(id: string, title: string, text: string): IsolationCase {
  return {
    id,
    group: 'escape',
    title,
    verdict: 'OK',
    billed: 'full',
    files: text,
    again: 'skipped',
    expect: { body: /^undefined(?:undefined|function)$/ },
  }
}

const SOURCES: readonly IsolationCase[] = [
  {
    ...refused(
      'E30b',
      'an environment with the name of what all objects have',
      '(function () { return { default: { fetch() {} } } })',
    ),
    env: JSON.parse('{"__proto__": "polluted"}') as Record<string, string>,
    refused: { status: 400, code: /^(?:bad-request|invalid-config)$/ },
  },
  refused('E18a', 'source that ends its wrapper', `}})();globalThis.pwn=1;(()=>{{`),
  refused('E18b', 'source that ends its wrapper, and goes on as a whole', `(function () {}), (() => { for (;;); })()`),
  refused('E18c', 'source that is an object with a call in it', `({ get default() { return this }, __proto__: null })`),
  source('E18d', 'source with another address', `${SERVED}\n//# sourceURL=../../host.js\n//# sourceMappingURL=host.js.map\n`),
  source('E18e', 'source with a hashbang and a byte order mark', `#!/usr/bin/env node\n${SERVED}`),
  source(
    'E18f',
    'source with ends of comments, scripts and templates',
    `/* </script> */ const text = '*/ }})(); globalThis.pwn = 1; (() => {{ \u2028'\n${SERVED}\n/* \u2028 \${text} */`,
  ),
]

/** Makes values at random, of which the seed decides, and gives them to everything that takes any. */
const FUZZ = `
  let seed = Number(new URL(request.url).searchParams.get('seed'))
  const random = (limit) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % limit }
  const pool = [], makers = [
    () => random(1000) - 500, () => 'x'.repeat(random(300)), () => null, () => undefined, () => NaN, () => BigInt(random(99)), () => Symbol('s'), () => ({}), () => [], () => new Map(), () => new Uint8Array(random(64)), () => new ArrayBuffer(random(64), { maxByteLength: 64 }),
    () => new Proxy({}, { get: (_, key) => pick(), ownKeys: () => { throw pick() } }), () => ({ get a() { return pick() }, toString: () => pick(), then: random(9) ? undefined : pick() }), () => () => pick(), () => new Error(String(random(9))), () => new Date(random(1e6)), () => new Headers(), () => new Response('x'), () => new URL('http://a/'), () => Promise.resolve(1), () => new AbortController().signal, () => new ReadableStream(), () => Object.create(null),
  ]
  const pick = () => { const value = random(3) && pool.length ? pool[random(pool.length)] : makers[random(makers.length)](); if (pool.length < 200) pool.push(value); else pool[random(200)] = value; if (random(4) === 0) try { value['k' + random(5)] = pool[random(pool.length)] } catch {} return value }
  const names = ['fetch', 'structuredClone', 'atob', 'btoa', 'setTimeout', 'clearTimeout', 'queueMicrotask', 'reportError', 'URL', 'URLSearchParams', 'Headers', 'Request', 'Response', 'TextDecoder', 'Event', 'EventTarget', 'FormData', 'DOMException', 'AbortController', 'ReadableStream', 'Blob', 'File', 'MessageChannel', 'MessageEvent', 'URLPattern', 'CompressionStream', 'DecompressionStream', 'TextDecoderStream', 'WeakRef', 'FinalizationRegistry', 'ErrorEvent', 'CryptoKey', 'PerformanceMark', 'PerformanceObserver']
  const objects = [console, crypto, crypto.subtle, request, ctx, performance, AbortSignal, Response, URL, new MessageChannel().port1, new Blob(['x']), new FormData(), new URLPattern({ pathname: '/:a' })]
  const pending = []
  for (let turn = 0; turn < 1000; turn++) {
    try {
      let made
      if (random(2)) { const target = globalThis[names[random(names.length)]]; made = random(2) ? target(pick(), pick()) : new target(pick(), pick()) }
      else { const object = random(2) ? objects[random(objects.length)] : pick(); const keys = [...Reflect.ownKeys(object), ...Reflect.ownKeys(Object.getPrototypeOf(object))]; const key = keys[random(keys.length)]; if (key === 'constructor' || key === 'prototype') continue; made = object[key](pick(), pick()) }
      if (made instanceof Promise) made.catch(() => {})
    } catch {}
  }
  return random(2) ? new OwnResponse('fine') : pick()
`

const FUZZED: IsolationCase = {
  id: 'E33',
  group: 'escape',
  title: 'values at random for every function of the runtime, and for an answer',
  verdict: 'OK',
  billed: 'heartbeat',
  limits: { cpuMs: 5_000, wallMs: 5_000, memoryMb: 64 },
  handler: FUZZ,
  // Whatever comes of it: no crash, no hang, nothing of the host.
  expect: { code: /^(?:|exception|invalid-response|cpu-exceeded|timeout|memory-exceeded|isolate-lost)$/ },
  again: 'skipped',
  leavesWork: true,
  attack: async ({ t, call: own }) => {
    const seeds = Array.from({ length: runs(5, 1 / 5) }, (_, index) => index + 1)
    const answers = []
    for (const seed of seeds) answers.push(await own(`/?seed=${seed}`, {}))
    t.comment(answers.map(({ status, code }) => `${status} ${code}`).join())
    return { answers }
  },
  isRepeatable: false,
}

export const ESCAPE_STATE_CASES: readonly IsolationCase[] = [...STATE, ...TIME, ...SOURCES, FUZZED]
