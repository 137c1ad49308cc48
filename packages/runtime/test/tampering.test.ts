import t from 'tap'
import { Guest, guestOf } from './support/guest.ts'

/** Overwrites everything that a runtime written without care would call. */
const VANDALISM = `
  const { ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect
  const broken = () => { throw new Error('tampered') }
  const touch = (object) => {
    const keys = ownKeys(object)
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index]
      const descriptor = getOwnPropertyDescriptor(object, key)
      if (key === 'constructor' || !descriptor.configurable) continue
      const isAccessor = descriptor.get || descriptor.set
      if (isAccessor) defineProperty(object, key, { get: broken, set: broken, configurable: true })
      else if (typeof descriptor.value === 'function') defineProperty(object, key, { value: broken, writable: true, configurable: true })
    }
  }
  const prototypes = [Array, String, Map, Set, WeakMap, Promise, RegExp, Function, Number, Date, Uint8Array, Symbol].map((made) => made.prototype)
  const iterators = [[][Symbol.iterator](), new Map().entries(), new Set().values(), ''[Symbol.iterator]()].map((iterator) => Object.getPrototypeOf(iterator))
  const targets = [...prototypes, ...iterators, Object.getPrototypeOf(Uint8Array.prototype), Promise, JSON, Number, Date, Math, Error, ArrayBuffer, Reflect, Object, String, Symbol]
  const names = ['status', 'headers', 'handler', 'fetch', 'kind', 'text', 'resolve', 'toJSON', 'value', 'writable', 'get', 'set']
  for (let index = 0; index < targets.length; index++) touch(targets[index])
  for (let index = 0; index < names.length; index++) {
    defineProperty(Object.prototype, names[index], { __proto__: null, configurable: true, get() { return undefined }, set() {} })
  }
`

t.test('Invocations are answered whatever user code did to the built-ins', (t) => {
  const guest = new Guest().load(`(() => {
    let calls = 0
    const upstream = new Request('http://up')
    return { default: { async fetch(request, env, ctx) {
      if (calls++ === 0) { ${VANDALISM}; return new Response('first') }
      if (calls === 2) throw new TypeError('second')
      if (calls === 3) return new Response('third', { headers: { 'x-a': request.headers.get('host') } })
      if (calls === 4) { await new Promise((resolve) => setTimeout(resolve, 5)); console.log('log', 5, { a: [1] }); return new Response(await request.text()) }
      if (calls === 5) return 'wrong'
      if (calls === 6) return new Response(await (await fetch(upstream)).text())
      const bytes = new Uint8Array(2); bytes[1] = 255; return new Response(bytes)
    } } }
  })()`)
  t.equal(guest.call().body, 'first')
  t.match(guest.callToFail(), { outcome: 'exception', message: 'TypeError: second' })
  t.same(guest.call().headers, [
    ['x-a', 'localhost:8080'],
    ['content-type', 'text/plain;charset=UTF-8'],
  ])
  const fourth = guest.start({ method: 'POST', bodyKind: 'text', body: 'echo' })
  guest.fireTimer(1)
  t.equal(guest.answers.get(fourth)?.body, 'echo')
  t.same(guest.lines, ['info: log 5 { a: [ 1 ] }'])
  t.match(guest.callToFail(), { outcome: 'invalid-response', message: /returned 'wrong'/ })
  const sixth = guest.start()
  guest.settleFetch(1, { ok: true, status: 200, statusText: '', headers: [], url: '', redirected: false }, 'text', 'up')
  t.equal(guest.answers.get(sixth)?.body, 'up')
  t.equal(guest.call().body, '\x00\xff')
  t.end()
})

t.test('Lambda handlers are answered whatever user code did to the built-ins', (t) => {
  const guest = new Guest().load(
    `(() => { ${VANDALISM}; return { handler: async (event) => ({ statusCode: 200, body: event.rawPath }) } })()`,
  )
  t.same(guest.loaded, { ok: true, form: 'lambda' })
  t.match(guest.call(), { status: 200, body: '/path' })
  t.end()
})

t.test('A function that takes its global object apart hurts only its own code', (t) => {
  const acts: Readonly<Record<string, string>> = {
    'frozen': `Object.freeze(globalThis); Object.freeze(Object.prototype); Object.freeze(Promise.prototype)`,
    'emptied': `for (const key of Reflect.ownKeys(globalThis)) { try { delete globalThis[key] } catch {} }`,
    'given another prototype': `Object.setPrototypeOf(globalThis, new Proxy({}, { get() { throw new Error('asked') }, has() { throw new Error('asked') } }))`,
    'overwritten': `for (const key of Reflect.ownKeys(globalThis)) { try { globalThis[key] = undefined } catch {} }`,
  }
  for (const [title, act] of Object.entries(acts)) {
    const guest = new Guest().load(`(() => {
      const { Response, fetch, console, setTimeout, Promise } = globalThis
      let calls = 0
      return { default: { async fetch(request) {
        calls++
        if (calls === 1) { ${act} }
        if (calls === 2) throw new calls.none()
        if (calls === 3) return 5
        console.log('call', { calls })
        await new Promise((resolve) => setTimeout(resolve, 1))
        return new Response(await (await fetch('http://up/')).text(), { headers: { a: request.url } })
      } } }
    })()`)
    const answerLater = (): void => {
      const number = guest.start()
      guest.fireTimer([...guest.timers.keys()][0] ?? 0)
      guest.settleFetch(
        [...guest.fetches.keys()].at(-1) ?? 0,
        { ok: true, status: 200, statusText: '', headers: [], url: '', redirected: false },
        'text',
        'up',
      )
      t.match(guest.answers.get(number), { status: 200, body: 'up' }, title)
    }
    answerLater()
    t.match(guest.callToFail(), { outcome: 'exception', message: 'TypeError: calls.none is not a constructor' }, title)
    t.match(guest.callToFail(), { outcome: 'invalid-response', message: /returned 5/ }, title)
    answerLater()
    t.same(guest.lines, ['info: call { calls: 1 }', 'info: call { calls: 4 }'], title)
  }
  const next = guestOf(`return Response.json([typeof fetch, typeof Object, Object.isFrozen(globalThis)])`)
  t.same(JSON.parse(next.call().body), ['function', 'function', false])
  t.end()
})

t.test('A replaced Promise.prototype.then sees no answer of another invocation', (t) => {
  const guest = guestOf(`
    const original = Promise.prototype.then
    Promise.prototype.then = function () { console.log('then was called'); return original.apply(this, arguments) }
    return new Response('quiet')`)
  guest.call()
  guest.call()
  t.same(guest.lines, [])
  t.end()
})

t.test('Neither globals, stacks nor prototypes lead to the bridge', (t) => {
  const guest = new Guest().load(`(() => {
    const names = ['loaded', 'answer', 'fail', 'startTimer', 'stopTimer', 'startFetch', 'stopFetch', 'log', 'say', 'drain', 'library', 'random', 'begin', 'dispatch', 'load']
    const found = []
    const note = (value, path) => { if (typeof value === 'function' && names.includes(value.name) && value.name !== 'log' && value !== Atomics.load && value !== Math.random) found.push(path) }
    const seen = new Set()
    const walk = (value, path) => {
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value) || path.length > 200) return
      seen.add(value); note(value, path)
      for (const key of Reflect.ownKeys(value)) {
        const descriptor = Reflect.getOwnPropertyDescriptor(value, key)
        for (const part of [descriptor.value, descriptor.get, descriptor.set]) walk(part, path + '.' + String(key))
      }
      walk(Reflect.getPrototypeOf(value), path + '.__proto__')
    }
    walk(globalThis, 'globalThis')
    Error.prepareStackTrace = (error, sites) => { for (const site of sites) { note(site.getFunction(), 'stack'); walk(site.getThis(), 'this') } return 'replaced' }
    const hooked = function () { new Error().stack; note(hooked.caller, 'caller'); try { note(hooked.arguments, 'arguments') } catch {} }
    return { default: {
      fetch(request, env, ctx) {
        for (const value of [request, env, ctx, this]) walk(value, 'argument')
        hooked()
        setTimeout({ toString() { return '' }, valueOf: hooked } && hooked)
        console.log({ get [Symbol.for('nodejs.util.inspect.custom')]() { hooked(); return undefined } })
        return Response.json({ found, globals: Object.getOwnPropertyNames(globalThis).filter((name) => /ivm|carpool|bridge|boot/i.test(name)) })
      } } }
  })()`)
  t.same(JSON.parse(guest.call().body), { found: [], globals: [] })
  t.end()
})

t.test('An answer counts once, however often it is given', (t) => {
  const guest = new Guest().load(
    `({ default: { fetch: () => ({ then(resolve, reject) { resolve(new Response('one')); resolve(new Response('two')); reject(new Error('three')) } }) } })`,
  )
  t.equal(guest.call().body, 'one')
  t.equal(guest.failures.size, 0)
  t.end()
})
