/**
 * Walks everything that user code can reach and compares it with `golden/reachable.txt`: what is new there is to be looked at,
 * for one function of the host would be a way out. After a new version of V8 or a new web API, look at the difference and renew
 * the file: `UPDATE_GOLDEN=1 npm run test:unit -- packages/runtime/test/reachable.test.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GuestOptions } from '@carpool/runtime'
import t from 'tap'
import { Guest, run } from './support/guest.ts'
import { WALK } from './support/walk.ts'

const GOLDEN = join(import.meta.dirname, 'golden/reachable.txt')

/** Values that user code gets without a name for them: by syntax, by being called, and by what goes wrong. */
const ROOTS = `
  const caught = (code) => { try { code() } catch (error) { return error } }
  const sitesOf = () => {
    const before = Error.prepareStackTrace
    let sites
    Error.prepareStackTrace = (error, given) => { sites = given; return '' }
    // From within the runtime, which calls back.
    new Headers({ a: { toString() { new Error().stack; return '' } } })
    Error.prepareStackTrace = before
    return sites
  }
  const shownTo = () => { let given; console.log({ [Symbol.for('nodejs.util.inspect.custom')](...args) { given = args } }); return given }
  const listened = () => { let given; const target = new EventTarget(); target.addEventListener('a', function (event) { given = [this, event] }); target.dispatchEvent(new Event('a')); return given }
  const rootsOf = async () => ({
    bySyntax: [
      () => {}, function () { 'use strict' }, class {}, async () => {}, function* () {}, async function* () {}, (function* () {})(), (async function* () {})(), Promise.resolve(), /a/, /(?<a>.)/.exec('a'),
      ((strings) => strings)\`a\`, [][Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](), ''[Symbol.iterator](), 'a'.matchAll(/a/g), Iterator.from({ next() {} }), [].values().map((x) => x),
      (function () { return arguments })(), new Intl.Segmenter().segment('a'), new Intl.Segmenter().segment('a')[Symbol.iterator](), new Intl.DateTimeFormat().format, new (class { #a = 1 })(),
    ],
    made: [
      new Headers({ a: '1' }), new Headers().entries(), new URL('http://a/?b'), new URLSearchParams().keys(), new FormData().values(), new Response('a'), new Response('a').body, new Response('a').body.getReader(),
      new Request('http://a/'), new AbortController(), new TextDecoder(), new TextEncoder(), new TransformStream(), new WritableStream().getWriter(), new Response('a').text(), structuredClone(new Map()), fetch('http://a/'),
    ],
    errors: [
      caught(() => null.a), caught(() => { (function over() { over() })() }), caught(() => eval('}')), caught(() => JSON.parse('}')), caught(() => new URL('')), caught(() => new Response('', { status: 1 })),
      caught(() => structuredClone(() => {})), caught(() => atob('*')), caught(() => new Headers({ a: '\\n' })), caught(() => setTimeout('code')), caught(() => crypto.getRandomValues(1)), caught(() => decodeURIComponent('%')),
      caught(() => new Array(-1)), caught(() => 1n + 1), caught(() => Symbol() + ''), await fetch('http://a/', { signal: AbortSignal.abort() }).catch((error) => error), await new Response('}').json().catch((error) => error),
    ],
    sites: sitesOf(),
    ofSites: sitesOf().map((site) => [site.getThis(), site.getFunction(), site.getTypeName(), site.getEvalOrigin(), site.getFileName(), site.getScriptNameOrSourceURL(), String(site)]),
    shownTo: shownTo(),
    listened: listened(),
  })
`

/** Whether each function leads to the function's own global object only, by the constructor of its kind. */
const GLOBALS_OF = `
  const globalsOf = async (objects) => {
    const wrong = []
    for (const [value, path] of objects) {
      if (typeof value !== 'function') continue
      let made
      try { made = value.constructor('return globalThis')() } catch (error) { wrong.push(path + ' ' + error); continue }
      if (typeof made?.next === 'function') made = (await made.next()).value
      if (await made !== globalThis) wrong.push(path)
    }
    return wrong
  }
`

interface Found {
  readonly lines: readonly string[]
  readonly strings: readonly string[]
  readonly globals: readonly string[]
  readonly ways: readonly string[]
}

/** Walks from all that a handler of a form is given. */
function find(form: 'fetch' | 'lambda', options: Partial<GuestOptions> = {}): Found {
  const report = `const { objects, lines, strings } = walk(roots)
    return JSON.stringify({ lines, strings: [...new Set(strings)], globals: await globalsOf(objects), ways: [...objects.values()] })`
  const handler =
    form === 'fetch'
      ? `{ default: { async fetch(request, env, ctx) { const roots = { globalThis, request, env, ctx, self: this, timer: await new Promise((resolve) => setTimeout(function (...args) { resolve([this, args]) }, 0, 1)), timeout: setTimeout(() => {}), support: carpoolSupport_, ...await rootsOf() }; return new Response(await (async () => { ${report} })()) } } }`
      : `{ async handler(event, context, callback) { const roots = { globalThis, event, context, callback, self: this }; ${report} } }`
  const guest = new Guest().load(`(() => { ${WALK} ${ROOTS} ${GLOBALS_OF} return (${handler}) })()`, options)
  const number = guest.start({ headers: [['cookie', 'a=1']], bodyKind: 'text', body: 'sent', method: 'POST' })
  for (const timer of guest.timers.keys()) guest.fireTimer(timer)
  const answer = guest.answers.get(number)
  if (answer === undefined) throw new Error(JSON.stringify([...guest.failures, guest.logs]))
  const body = form === 'fetch' ? answer.body : (JSON.parse(answer.body) as string)
  guest.isolate.dispose()
  return JSON.parse(body) as Found
}

const FORMS = {
  'a fetch handler': find('fetch'),
  'a Lambda handler': find('lambda'),
  'a fetch handler with WebAssembly and a clock that runs': find('fetch', { webAssembly: true, clock: 'running' }),
}

t.test('What can be reached is what is known', (t) => {
  const { 'a fetch handler': ofFetch, 'a Lambda handler': ofLambda } = FORMS
  const lambdaLines = ofLambda.lines.filter((line) => !line.startsWith('globalThis'))
  const found = ['# From a fetch handler', ...ofFetch.lines, '', '# From a Lambda handler', ...lambdaLines, '']
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(GOLDEN, found.join('\n'))
  const known = readFileSync(GOLDEN, 'utf8').split('\n')
  const [knownLines, foundLines] = [new Set(known), new Set(found)]
  t.same(
    { new: found.filter((line) => !knownLines.has(line)), gone: known.filter((line) => !foundLines.has(line)) },
    { new: [], gone: [] },
  )
  t.ok(found.length > 1500)
  t.end()
})

/** Members of the classes of isolated-vm: with a Reference, guests reach into the host. */
const OF_ISOLATED_VM =
  /\.(?:apply|get|set|copy|eval|run|compileScript|createContext|createCallback)(?:Sync|Ignored|SyncPromise)\b|\.(?:derefInto|releaseAndDispose)\b/
const CLASSES_OF_ISOLATED_VM = /\b(?:Reference|ExternalCopy|Callback|Dereference|NativeModule|Transferable)\b/

for (const [title, { lines, strings, globals, ways }] of Object.entries(FORMS)) {
  t.test(`From ${title} nothing of the host can be reached`, (t) => {
    t.same(globals, [], 'functions that know another global object')
    t.same(
      lines.filter((line) => OF_ISOLATED_VM.test(line) || CLASSES_OF_ISOLATED_VM.test(line)),
      [],
    )
    t.same(
      lines.filter((line) =>
        /^globalThis\.(?:require|module|exports|global|Buffer|__dirname|__filename|setUncaughtExceptionCaptureCallback)\b/.test(
          line,
        ),
      ),
      [],
    )
    t.same(
      lines.filter((line) => /^globalThis\.process\.[^e]|^globalThis\.process\.env\./.test(line)),
      [],
    )
    t.same(
      lines.filter((line) =>
        /SharedArrayBuffer|\bAtomics\.(?:wait|notify|pause)|ShadowRealm|JSTag|Suspending|promising/.test(line),
      ),
      [],
    )
    t.same(
      strings.filter((text) => /node_modules|node:|\.ts\b|\.mjs|file:\/\/|\/home\/|\/tmp\/|isolated-vm|applySync/.test(text)),
      [],
      'texts that tell of the host',
    )
    t.ok(ways.length > 500)
    t.end()
  })
}

t.test('Code that is made from text runs in the world of the function', (t) => {
  t.same(
    run(`
      const AsyncFunction = (async () => {}).constructor
      return [
        eval('globalThis') === globalThis, (0, eval)('this') === globalThis, new Function('return globalThis')() === globalThis, await new AsyncFunction('return globalThis')() === globalThis,
        new Function('return typeof process.binding + typeof require + typeof Buffer + typeof global + typeof module')(),
        [].constructor.constructor('return typeof process.exit')(),
        await import('node:fs').then(() => 'imported', (error) => error.name), eval('try { require("fs") } catch (error) { error.name }'),
      ]`),
    [true, true, true, true, 'undefinedundefinedundefinedundefinedundefined', 'undefined', 'Error', 'ReferenceError'],
  )
  for (const timer of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask']) {
    t.same(run(`try { ${timer}('globalThis.hit = 1'); return 'taken' } catch (error) { return error.name }`), 'TypeError', timer)
  }
  t.end()
})
