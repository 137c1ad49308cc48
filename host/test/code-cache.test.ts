/** V8's code caches of functions: what is in them, who makes them, and what becomes of those that V8 does not take. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CodeCache } from '../src/isolates/guest-isolate.ts'
import { inProcessHost, type InProcessHost } from './support/in-process-host.ts'
import { isolateWith, RAN } from './support/isolate.ts'

const CODE = { source: '(function () { return [1, 2] })', filename: 'f.js' }

/** In V8's own words: the functions of the code that each isolate compiled when they first ran, in the order of the isolates. */
function compiledLazily(folder: string): string[][] {
  const logs = readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
    .filter((lines) => lines.some((line) => line.startsWith('script-details,') && line.includes('function-under-test.js')))
  return logs.map((lines) =>
    lines
      .filter((line) => line.startsWith('function,parse-function,'))
      .map((line) => line.split(',').at(-1)!)
      .filter((name) => ['moduleScope', 'ranInModuleScope', 'neverRan'].includes(name)),
  )
}

t.test('a cold start with the code cache compiles nothing that the module scope runs', async (t) => {
  const folder = t.testdir()
  const script = join(import.meta.dirname, 'support/cold-starts.mjs')
  const flags = ['--log-function-events', `--logfile=${join(folder, 'log')}`]
  t.equal(execFileSync(process.execPath, [...flags, script], { encoding: 'utf8' }), '{"isTaken":true}\n')
  t.strictSame(
    compiledLazily(folder).toSorted((a, b) => b.length - a.length),
    [['ranInModuleScope'], []],
  )
})

t.test('code is loaded with and without its cache, and a cache of other code is rejected', async (t) => {
  const maker = await isolateWith(t)
  await maker.isolate.load('loaded', CODE)
  const own = await maker.isolate.makeCodeCache(CODE)
  const longer = { source: '(function () { return [1, 2, 3] })', filename: 'g.js' }
  await maker.isolate.load('loaded', longer)
  const other = await maker.isolate.makeCodeCache(longer)
  if (own === undefined || other === undefined) throw new Error('There are no code caches.')
  for (const [cache, isTaken] of [
    [undefined, false],
    [own, true],
    [other, false],
    [new Uint8Array([1, 2, 3]), false],
    [own.slice(0, -8), false],
  ] as const) {
    const { isolate, messages } = await isolateWith(t)
    const load = isolate.load('loaded', { ...CODE, ...(cache !== undefined && { codeCache: new CodeCache(cache) }) })
    t.equal(await load, isTaken)
    t.same(
      messages().map(([op, , , , text]) => [op, text]),
      [[RAN, 'loaded [1,2]']],
    )
  }
})

t.test('a code cache is a copy: what it came in stays whose it is', async (t) => {
  const chunk = Buffer.from('a chunk of the connection')
  t.ok(new CodeCache(chunk.subarray(2, 7)))
  t.equal(chunk.toString(), 'a chunk of the connection')
})

const HANDLER = `if (request.url.endsWith('loop')) for (;;); return new Response('fine')`
const uncached = (host: InProcessHost): number => host.sent.filter(({ message }) => message.type === 'uncached').length

/** Calls it in a new isolate. */
async function callAnew(host: InProcessHost): Promise<string> {
  const { message } = await host.endOf(host.invoke('rev', '/loop'))
  if (message.type !== 'failed') throw new Error('The isolate was not ended.')
  return host.answerOf(host.invoke('rev'))
}

t.test('a host says which revision it loads without a code cache, and takes a better one', async (t) => {
  const host = await inProcessHost()
  host.load('rev', HANDLER, { cpuMs: 50 })
  host.host.receive({ type: 'start', revision: 'rev' }, '', new Uint8Array())
  await host.sentOf('started')
  t.equal(uncached(host), 1)
  host.host.receive({ type: 'make-code-cache', revision: 'rev', rehearsed: false }, '', new Uint8Array())
  const { bytes } = await host.sentOf('code-cache-made')
  t.ok(bytes.length > 0)

  const useCodeCache = (cache: Uint8Array): void => host.host.receive({ type: 'use-code-cache', revision: 'rev' }, '', cache)
  useCodeCache(Buffer.from('no code cache'))
  t.equal(await callAnew(host), 'fine')
  t.equal(uncached(host), 2, 'V8 rejects it')
  useCodeCache(bytes)
  t.equal(await callAnew(host), 'fine')
  t.equal(uncached(host), 2, 'V8 takes it')
  host.host.receive({ type: 'use-code-cache', revision: 'unknown' }, '', bytes)
})

t.test('there is no code cache of what has not started, or is gone before it is made', async () => {
  const host = await inProcessHost()
  const ask = async (): Promise<number> => {
    const asked = host.sentOf('code-cache-made')
    host.host.receive({ type: 'make-code-cache', revision: 'rev', rehearsed: false }, '', new Uint8Array())
    return (await asked).bytes.length
  }
  t.equal(await ask(), 0)
  host.load('rev', HANDLER, { cpuMs: 50 })
  t.equal(await ask(), 0, 'it was given and not started')
  t.equal(await host.answerOf(host.invoke('rev')), 'fine')
  host.invoke('rev', '/loop')
  // Behind the endless call.
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(await ask(), 0, 'the isolate was ended first')
})

/** What of its handler only the first call compiles. */
const LONG_HANDLER = `
  const compiledWhenCalled = () => {
    ${Array.from({ length: 50 }, (_, index) => `const a${index} = { name: 'a${index}', of: [calls, ${index}] }`).join('\n    ')}
    return a0
  }
  console.log('called', request.url, request.headers.get('host'))
  setTimeout(() => console.log('later'), 0)
  fetch('http://localhost/from-handler')
  Promise.reject(new Error('nobody hears of it'))
  compiledWhenCalled()
  calls++
  await null
  compiledWhenCalled()
  return new Response('fine')
`

/** The code cache of a handler as it was loaded, and after it was called, with what the host sent from then on. */
async function cachesOf(handler: string): Promise<{ loaded: number; rehearsed: number; sent: string[] }> {
  const host = await inProcessHost()
  host.load('rev', handler, { cpuMs: 50, memoryMb: 32 })
  host.host.receive({ type: 'start', revision: 'rev' }, '', new Uint8Array())
  await host.sentOf('started')
  const make = async (rehearsed: boolean): Promise<number> => {
    host.host.receive({ type: 'make-code-cache', revision: 'rev', rehearsed }, '', new Uint8Array())
    return (await host.sentOf('code-cache-made')).bytes.length
  }
  const loaded = await make(false)
  const before = host.sent.length
  const rehearsed = await make(true)
  const sent = host.sent.slice(before).map(({ message }) => message.type)
  // A timer that the call had started would have fired before one that is started now.
  const between = host.sent.length
  host.load('other', `await new Promise((resolve) => setTimeout(resolve)); return new Response('')`)
  await host.answerOf(host.invoke('other'))
  const later = host.sent.slice(between).filter(({ message }) => 'revision' in message && message.revision === 'rev')
  return { loaded, rehearsed, sent: [...sent, ...later.map(({ message }) => message.type)] }
}

t.test('a rehearsed code cache has what the handler runs, and nothing of the call leaves the isolate', async (t) => {
  const { loaded, rehearsed, sent } = await cachesOf(LONG_HANDLER)
  t.ok(rehearsed > loaded + 1_000, `${rehearsed} bytes after ${loaded}`)
  t.strictSame(
    sent.filter((type) => type !== 'load-report'),
    ['code-cache-made'],
  )
})

t.test('there is no rehearsed code cache of a handler that passes its limits, and one of a handler that throws', async (t) => {
  const endless = await cachesOf('for (;;);')
  t.ok(endless.loaded > 0)
  t.equal(endless.rehearsed, 0)
  t.ok((await cachesOf('throw new Error(request.url)')).rehearsed > 0)
})
