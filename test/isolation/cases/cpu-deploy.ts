/** Group C2, rows C17, C18, C21 to C23: depth, many at once, and code that is hostile before it is called. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../support/command.ts'
import { call, shown } from '../harness/call.ts'
import { deployScript } from '../harness/control.ts'
import { FORM } from '../harness/form.ts'
import type { IsolationCase } from '../harness/isolation-case.ts'
import { peakThreads } from '../harness/process-sample.ts'
import { recordsOf } from '../harness/records.ts'

const LIMITS = { cpuMs: 200, wallMs: 5_000, memoryMb: 64 }
const MAX_THREADS = 40
/** Functions that run away together. */
const AT_ONCE = FORM.isFull ? 20 : FORM.hasVariants ? 8 : 4

/** Runs out of stack, which is an error like any other. What it left in the heap may have the isolate retired. */
function deep(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return {
    id,
    group: 'CPU',
    title,
    verdict: 'E',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 2_000 },
    again: 'any',
    handler,
    ...more,
  }
}

const DEPTH: readonly IsolationCase[] = [
  deep('C17a', 'endless recursion', 'return (function again() { return again() + 1 })()'),
  deep(
    'C17b',
    'endless recursion through a logged value',
    'const a = { get a() { console.log("%s", a); return a }, toString() { return `${this}` } }; return new Response(String(a))',
  ),
  deep('C17c', 'endless recursion through toJSON', 'const a = { toJSON() { return { a } } }; return Response.json(a)'),
  deep('C17d', 'a regular expression that is nested deeply', `new RegExp('('.repeat(1e6) + ')'.repeat(1e6))`),
  deep('C17e', 'source that is nested deeply', `eval('('.repeat(1e6))`),
  deep(
    'C17f',
    'an array that is nested deeply, as JSON',
    'let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return new Response(JSON.stringify(a).slice(0, 3))',
    {
      verdict: 'OK',
      expect: { body: '[[[' },
    },
  ),
  deep(
    'C17g',
    'an array that is nested deeply, cloned',
    'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; structuredClone(a); return new Response("fine")',
  ),
  deep(
    'C17h',
    'an array that is nested deeply, logged',
    'let a = []; for (let i = 0; i < 1e6; i++) a = [a]; console.log(a); console.log("%O", a); return new Response("fine")',
    { verdict: 'R' },
  ),
  deep('C17i', 'causes of an error that lead in a circle', 'const e = new Error("x"); e.cause = e; throw e'),
  deep('C17j', 'a million causes of an error', 'let e; for (let i = 0; i < 1e5; i++) e = new Error("x", { cause: e }); throw e', {
    limits: { ...LIMITS, cpuMs: 5_000 },
  }),
  deep('C17k', 'recursion into each call of the host', RECURSION(), {
    verdict: 'R',
    expect: { body: 'fine' },
    // A slow machine takes more than 2 s for it, while others have its cores.
    limits: { ...LIMITS, cpuMs: 10_000, wallMs: 30_000 },
  }),
]

/** Calls the runtime's functions with next to no stack left. */
function RECURSION(): string {
  return `
    const tries = [
      () => console.log('x'), () => clearTimeout(setTimeout(() => {}, 1)), () => crypto.getRandomValues(new Uint8Array(65536)),
      () => fetch(env.UPSTREAM).catch(() => {}), () => new URL('http://a/b?c'), () => structuredClone({ a: [1] }),
      () => new Response('x').text().catch(() => {}), () => new Headers({ a: 'b' }), () => queueMicrotask(() => {}),
    ]
    for (const attempt of tries) {
      let depth = 0
      const dig = () => { depth++; try { dig() } catch {} if (depth-- > 50 && depth % 200) return; try { attempt() } catch {} }
      dig()
    }
    return new Response('fine')`
}

/** A deploy that is refused; no running function feels it. */
function refused(id: string, title: string, script: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return { id, group: 'CPU', title, verdict: 'R', billed: 'none', refused: { status: 422, code: 'load-failed' }, script, ...more }
}

const DEPLOYS: readonly IsolationCase[] = [
  refused(
    'C22a',
    'a bundle of eleven megabytes',
    `(function () { return { default: { fetch() {} } } })//${'x'.repeat(11 * 1024 * 1024)}`,
    {
      refused: { status: 413, code: 'bundle-too-large', detail: /10485760 bytes/ },
    },
  ),
  refused('C22b', 'parentheses that are nested a million deep', `(function () { ${'('.repeat(1e6)} })`),
  refused('C22c', 'arrays that are nested a million deep', `(function () { return ${'['.repeat(1e6)}${']'.repeat(1e6)} })`),
  refused('C22d', 'blocks that are nested a million deep', `(function () { ${'{'.repeat(1e6)}${'}'.repeat(1e6)} })`),
  refused('C22e', 'a name of four megabytes', `(function () { return ${'x'.repeat(4 * 1024 * 1024)} })`),
  refused('C22f', 'half a million operators', `(function () { return {} ${'+ 1'.repeat(5e5)} })`, {
    refused: { status: 422, code: /^(?:load-failed|no-handler)$/ },
  }),
  refused('C23a', 'a module scope that loops', '(function () { for (;;); })', { limits: { ...LIMITS, wallMs: 500 } }),
  refused('C23b', 'a module scope that throws', `(function () { throw new Error('not today') })`, {
    refused: { status: 422, code: 'load-failed', detail: /not today/ },
  }),
  refused('C23c', 'a module scope that never ends to wait', '(async function () { await new Promise(() => {}) })', {
    limits: { ...LIMITS, wallMs: 500 },
  }),
  refused(
    'C23d',
    'a module scope that takes all memory',
    '(function () { const kept = []; for (;;) kept.push({ kept: [1, 2, 3] }) })',
    {
      limits: { ...LIMITS, memoryMb: 32 },
    },
  ),
  refused('C23e', 'a module scope that floods the log', `(function () { for (;;) console.log('x'.repeat(1000)) })`, {
    limits: { ...LIMITS, wallMs: 500 },
  }),
  refused(
    'C23f',
    'a module scope whose exports loop when they are read',
    '(function () { return { get default() { for (;;); } } })',
    {
      limits: { ...LIMITS, wallMs: 500 },
    },
  ),
  refused(
    'C23g',
    'a module scope that kills its process',
    '(function () { [].includes.call({ length: 2 ** 53 - 1 }, 1); for (;;); })',
    {
      limits: { ...LIMITS, wallMs: 500 },
    },
  ),
  refused('C23h', 'a bundle that is no function', '({})', { refused: { status: 422, code: 'load-failed' } }),
]

const REST: readonly IsolationCase[] = [
  {
    id: 'C23i',
    group: 'CPU',
    title: 'a module scope that loops only where it is called for, with twenty first calls at once',
    verdict: 'K',
    // One of them is charged for the start, which the others waited for.
    billed: 'heartbeat',
    limits: { ...LIMITS, wallMs: 1_000 },
    // Tried out at the deploy, then brought up in the host: from then on it loops.
    script: `(async function () {
      const turn = Number(await (await fetch(process.env.UPSTREAM + 'turn/c23i')).text());
      if (turn > 1) for (;;);
      return { default: { fetch: () => new Response('fine') } };
    })`,
    isDeployed: true,
    again: 'skipped',
    isRepeatable: false,
    // Who waits for the start of others may have to leave the queue.
    expect: { code: /^(?:cpu-exceeded|timeout|load-failed|isolate-lost|saturated)$/ },
    attack: async ({ call }) => ({ answers: await Promise.all(Array.from({ length: 20 }, () => call())) }),
    check: ({ t }, { records }) => {
      const inits = records.filter((record) => Number(record['init_cpu_us']) > 0)
      t.ok(inits.length <= 3, `${inits.length} of ${records.length} calls were charged for a start`)
    },
  },
  {
    id: 'C18',
    group: 'CPU',
    title: `an endless loop in each of ${AT_ONCE} functions at once`,
    verdict: 'K',
    billed: 'cap',
    limits: { ...LIMITS, cpuMs: 100, wallMs: 60_000 },
    handler: 'for (;;);',
    isRepeatable: false,
    expect: { status: 502, code: 'cpu-exceeded' },
    attack: async ({ t, rig, name, call: own }) => {
      const names = Array.from({ length: AT_ONCE - 1 }, (_, index) => `${name}-${index}`)
      const limits = { ...LIMITS, cpuMs: 100, wallMs: 60_000 }
      const code = '(function () { return { default: { fetch() { for (;;); } } } })'
      await Promise.all(names.map((other) => deployScript(rig.server, other, { code, limits })))
      const { pid } = await rig.host()
      const calls = [own(), ...names.map((other) => call(`${rig.server.url}/${other}/`))]
      const threads = await peakThreads(pid, Promise.all(calls))
      t.ok(threads <= MAX_THREADS, `${threads} threads`)
      const [answer, ...rest] = await Promise.all(calls)
      t.strictSame(
        rest.map(shown).filter((text) => !text.startsWith('502 cpu-exceeded')),
        [],
      )
      for (const other of names) {
        const [record] = await recordsOf(rig.server, other)
        t.ok(Number(record?.['cpu_us']) <= 150_000, `${other} is billed ${record?.['cpu_us']} µs`)
      }
      return { answers: answer === undefined ? [] : [answer] }
    },
  },
  {
    id: 'C21',
    group: 'CPU',
    title: 'calls of an isolate that would hold the event loop of the host',
    verdict: 'R',
    billed: 'full',
    handler: 'return new Response("fine")',
    check: ({ t }) => {
      const folder = join(ROOT, 'host/src')
      const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => [file, readFileSync(join(folder, file), 'utf8')] as const)
      t.ok(sources.length > 10, `${sources.length} files`)
      const blocking =
        /\.(?:apply|eval|evalClosure|run|get|set|delete|getHeapStatistics|createContext|compileScript|compileModule|copy|derefInto)Sync(?:Promise)?\b/
      t.strictSame(
        sources.filter(([, text]) => blocking.test(text)).map(([file]) => file),
        [],
      )
    },
  },
]

export const CPU_DEPLOY_CASES: readonly IsolationCase[] = [...DEPTH, ...DEPLOYS, ...REST]
