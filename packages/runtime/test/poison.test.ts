/**
 * Everything that user code can replace is replaced by a spy: the runtime must go on, and must call none of it on its own
 * account.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { GuestOptions } from '@carpool/runtime'
import { Guest } from './support/guest.ts'

/**
 * Every name of a property that the runtime's code has: one that is read where it may be missing would be looked for on
 * `Object.prototype`.
 */
const guestFiles = globSync(join(import.meta.dirname, '../src/guest/**/*.ts'))
const PROPERTY_NAMES = [
  ...new Set(guestFiles.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/[\w$]+/g)].map(([name]) => name))),
].filter((name) => /^[a-z_$]/i.test(name))

/**
 * Replaces all that can be reached from the globals by spies, which call what they replace. `seen` holds the names of
 * what was called while `watching`, and `handed` what it was called with. The functions that were there before are given by
 * `m(holder, name)`.
 */
const SPIES = `
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys, setPrototypeOf } = Reflect
  const { create, prototype: root } = Object
  const text = String
  const seen = new Set(), handed = new Set(), add = Set.prototype.add, has = Set.prototype.has, each = Set.prototype.forEach
  const visited = new Set(), originals = new Map(), getOf = Map.prototype.get, setIn = Map.prototype.set
  let watching = false
  const note = (name, self, args) => {
    if (!watching) return
    apply(add, seen, [name])
    apply(add, handed, [self])
    for (let index = 0; index < args.length; index++) apply(add, handed, [args[index]])
  }
  const spyOn = (name, original) => {
    const spy = function (...args) {
      note(name, this, args)
      return new.target === undefined ? apply(original, this, args) : construct(original, args, new.target === spy ? original : new.target)
    }
    return spy
  }
  const m = (holder, name) => apply(getOf, originals, [holder])[name]
  const replace = (holder, key, path) => {
    const found = getOwnPropertyDescriptor(holder, key)
    const table = apply(getOf, originals, [holder]) ?? create(null)
    apply(setIn, originals, [holder, table])
    const name = path === '' ? text(key) : path + '.' + text(key)
    table[key] = found.get ?? found.value
    if (!found.configurable && !found.writable) return
    if (found.get !== undefined || found.set !== undefined) {
      const get = found.get && spyOn('get ' + name, found.get), set = found.set && spyOn('set ' + name, found.set)
      if (found.configurable) defineProperty(holder, key, { __proto__: null, get, set, configurable: true })
    } else if (key === 'constructor') {
      if (found.configurable) defineProperty(holder, key, { __proto__: null, get() { note('get ' + name, this, []); return found.value }, set(value) { defineProperty(this, key, { __proto__: null, value, writable: true, configurable: true }) }, configurable: true })
    } else if (typeof found.value === 'function') {
      const spy = spyOn(name, found.value)
      // What is made by a class that was replaced is still of it.
      if ('prototype' in found.value) defineProperty(spy, 'prototype', { __proto__: null, value: found.value.prototype })
      setPrototypeOf(spy, found.value)
      if (found.writable) defineProperty(holder, key, { __proto__: null, value: spy })
    }
  }
  const walk = (value, path) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || apply(has, visited, [value])) return
    apply(add, visited, [value])
    if (path.length > 120) return
    const keys = ownKeys(value)
    for (let index = 0; index < keys.length; index++) {
      const member = getOwnPropertyDescriptor(value, keys[index]).value
      walk(member, path === '' ? text(keys[index]) : path + '.' + text(keys[index]))
    }
    walk(getPrototypeOf(value), path + '.[[Prototype]]')
    for (let index = 0; index < keys.length; index++) {
      if (path === '' && (keys[index] === 'globalThis' || keys[index] === 'self')) continue
      replace(value, keys[index], path)
    }
  }
  const poisonRoot = (names) => {
    const put = (holder, name, path) => {
      if (getOwnPropertyDescriptor(holder, name) !== undefined) return
      defineProperty(holder, name, {
        __proto__: null,
        get() { note('get ' + path + '.' + name, this, []); return undefined },
        set(value) { note('set ' + path + '.' + name, this, [value]); defineProperty(this, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true }) },
        configurable: true,
      })
    }
    for (let index = 0; index < names.length; index++) if (names[index] !== '__proto__') put(root, names[index], 'Object.prototype')
    for (let index = 0; index < 64; index++) { put(Array.prototype, index, 'Array.prototype'); put(String.prototype, index, 'String.prototype') }
  }
`

/** Prototypes that no property of the globals leads to. */
const HIDDEN = `
  const hidden = [
    [][Symbol.iterator](), new Map().entries(), new Set().values(), ''[Symbol.iterator](), 'a'.matchAll(/a/g), Iterator.from({ next() {} }),
    [].values().map((x) => x), (function* () {})(), (async function* () {})(), (async () => {})(), new Headers().entries(),
    new URLSearchParams().keys(), new FormData().values(),
  ]
  // The classes that are made when they are first asked for.
  for (const name of Reflect.ownKeys(globalThis)) globalThis[name]
`

function poisoned(handler: string): string {
  return `(() => {
    ${SPIES}
    ${HIDDEN}
    const scope = globalThis
    walk(scope, '')
    for (let index = 0; index < hidden.length; index++) walk(getPrototypeOf(hidden[index]), 'hidden' + index)
    poisonRoot(${JSON.stringify(PROPERTY_NAMES)})
    return ${handler}
  })()`
}

/** The report: what was seen, as JSON, made with what was there before. */
const REPORT = `
  let names = ''
  apply(each, seen, [(name) => { names += (names === '' ? '' : '\\n') + name }])
  return m(scope, 'Response') && new (m(scope, 'Response'))(names)`

function seenBy(guest: Guest): string[] {
  const { body } = guest.call({ url: 'http://localhost/report' })
  return body === '' ? [] : body.split('\n').toSorted()
}

/** Calls of what was there before the spies: user code that is written so calls no spy itself. */
const CALLS = `
  const cls = (name) => m(scope, name)
  const call = (self, name, method, ...args) => apply(m(cls(name).prototype, method), self, args)
  const get = (self, name, property) => apply(m(cls(name).prototype, property), self, [])
  /** What user code does itself is not watched. */
  const then = (promise, done, failed) => {
    watching = false
    const next = apply(m(cls('Promise').prototype, 'then'), promise, [done, failed])
    watching = true
    return next
  }
  const sleep = (ms) => {
    watching = false
    const promise = construct(cls('Promise'), [(resolve) => { watching = true; cls('setTimeout')(resolve, ms) }])
    watching = true
    return promise
  }
  const log = (method, ...args) => apply(m(cls('console'), method), cls('console'), args)
`

/** What was called of the spies, but for what may be asked. */
function unexpected(guest: Guest, asked = /^$/): string[] {
  return seenBy(guest).filter((name) => !ASKED_OF_VALUES.test(name) && !asked.test(name))
}

t.test('spies see what is called', (t) => {
  const guest = new Guest().load(
    poisoned(`({ default: { fetch(request) {
      watching = true; [1].map((x) => x); new URL('http://a/').href; ({}).answer; watching = false
      ${REPORT}
    } } })`),
  )
  const all = ['Array.prototype.map', 'URL', 'get Object.prototype.answer', 'get URL.prototype.href']
  t.same(seenBy(guest), [...all, 'get Array.Symbol(Symbol.species)', 'get Array.prototype.constructor'].toSorted())
  t.end()
})

/**
 * What a value may be asked by anyone it is handed to, as the standards say: how it wants to be shown, and what V8 puts at the
 * head of a stack.
 */
const ASKED_OF_VALUES = /Symbol\((?:nodejs\.util\.inspect\.custom|Symbol\.toStringTag)\)$|^get DOMException\.prototype\.name$/

/** What work asks besides: properties of what the function itself handed over, where it did not give them. */
const ASKED: Readonly<Record<string, RegExp>> = {
  'addresses': /^get URL\.prototype\.\w+$/,
  'requests and responses':
    /^get (?:Request|Response)\.prototype\.\w+$|^get Object\.prototype\.(?:headers|integrity|keepalive|mode|referrer|referrerPolicy|signal|statusText|then|toJSON)$/,
  'the log': /^get Object\.prototype\.cause$/,
  'errors': /^get Object\.prototype\.cause$|^get DOMException\.prototype\.message$/,
}

/**
 * What functions do, by what it is for. Each is one text of code, run in an entry of its own. This is what bill, limits and
 * clock depend on.
 */
const BRIDGE_WORK: Readonly<Record<string, string>> = {
  'nothing': ``,
  'the clock': `
    call(cls('performance'), 'Performance', 'now'); m(cls('Date'), 'now')(); new (cls('Date'))(); cls('Date')(); call(cls('performance'), 'Performance', 'toJSON')
    m(m(cls('Temporal'), 'Now'), 'instant')(); m(m(cls('Temporal'), 'Now'), 'zonedDateTimeISO')(); m(m(cls('Temporal'), 'Now'), 'plainDateISO')()
    const format = new (m(cls('Intl'), 'DateTimeFormat'))('en')
    apply(m(m(cls('Intl'), 'DateTimeFormat').prototype, 'format'), format, [])(); apply(m(m(cls('Intl'), 'DateTimeFormat').prototype, 'formatToParts'), format, [])`,
  'background work': `
    const at = cls('setTimeout')(() => {}, 5, 1, 2), every = cls('setInterval')(() => {}, 5); cls('setImmediate')(() => {})
    cls('clearTimeout')(at); cls('clearInterval')(every); cls('queueMicrotask')(() => {}); cls('queueMicrotask')(() => { throw 1 })
    try { cls('setTimeout')('code') } catch {}`,
  'source texts': `for (let index = 0; index < shown.length; index++) apply(m(cls('Function').prototype, 'toString'), shown[index], [])`,
}

/** The same, of what stands in `src/guest/web-api`. */
const WEB_API_WORK: Readonly<Record<string, string>> = {
  'addresses': `
    const url = new (cls('URL'))('https://user:pw@EXAMPLE.com:8080/a/./b/../c%20d?x=1&y=%C3%A9#f')
    const names = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash']
    for (let index = 0; index < names.length; index++) get(url, 'URL', names[index])
    for (let index = 0; index < inputs.length; index++) {
      try { new (cls('URL'))(inputs[index]) } catch {}
      try { new (cls('URL'))(inputs[index], 'http://base/a/b?c') } catch {}
      try { new (cls('URL'))(inputs[index], 'file:///C:/a/b') } catch {}
      m(cls('URL'), 'canParse')(inputs[index]); m(cls('URL'), 'parse')(inputs[index])
    }
    call(url, 'URL', 'toString'); call(url, 'URL', 'toJSON'); log('log', url)
    url2 = new (cls('URL'))('http://a/')
    for (let index = 0; index < names.length; index++) {
      const name = names[index]
      for (let at = 0; at < inputs.length; at++) try { apply(setters[name], url2, [inputs[at]]) } catch {}
    }`,
  'parameters': `
    const params = new (cls('URLSearchParams'))('?a=1&b=%zz&a=2+3&é=\\u{1f600}')
    call(params, 'URLSearchParams', 'append', 'n', 1); call(params, 'URLSearchParams', 'set', 'a', '!~*é'); call(params, 'URLSearchParams', 'delete', 'b')
    call(params, 'URLSearchParams', 'getAll', 'a'); call(params, 'URLSearchParams', 'get', 'none'); call(params, 'URLSearchParams', 'has', 'a', '1')
    call(params, 'URLSearchParams', 'sort'); call(params, 'URLSearchParams', 'toString'); call(params, 'URLSearchParams', 'forEach', () => {})
    get(params, 'URLSearchParams', 'size'); log('log', params)
    new (cls('URLSearchParams'))({ a: '1' }); new (cls('URLSearchParams'))(params)`,
  'headers': `
    const headers = new (cls('Headers'))({ 'x-b': ' 2 ', 'X-A': '1' })
    call(headers, 'Headers', 'append', 'set-cookie', 'a=1'); call(headers, 'Headers', 'append', 'set-cookie', 'b=1'); call(headers, 'Headers', 'set', 'x-a', '3')
    call(headers, 'Headers', 'get', 'X-A'); call(headers, 'Headers', 'has', 'x'); call(headers, 'Headers', 'getSetCookie'); call(headers, 'Headers', 'delete', 'x-b')
    call(headers, 'Headers', 'forEach', () => {}); log('log', headers); new (cls('Headers'))(headers)
    try { call(headers, 'Headers', 'append', 'a b', '1') } catch {}
    try { call(headers, 'Headers', 'append', 'a', '1\\n') } catch {}`,
  'requests and responses': `
    const made = new (cls('Request'))('http://up/', { method: 'post', body: 'text', headers: { a: '1' }, redirect: 'manual', cache: 'no-store', credentials: 'omit' })
    const names = ['method', 'url', 'headers', 'signal', 'redirect', 'cache', 'credentials', 'mode', 'referrer', 'integrity', 'keepalive', 'bodyUsed']
    for (let index = 0; index < names.length; index++) get(made, 'Request', names[index])
    call(made, 'Request', 'clone'); new (cls('Request'))(made); log('log', made)
    try { new (cls('Request'))('no') } catch {}
    try { new (cls('Request'))('http://a/', { method: 'TRACE' }) } catch {}
    const response = new (cls('Response'))('text', { status: 201, statusText: 'Made', headers: { a: '1' } })
    get(response, 'Response', 'status'); get(response, 'Response', 'ok'); get(response, 'Response', 'headers'); call(response, 'Response', 'clone'); log('log', response)
    m(cls('Response'), 'json')({ a: 1 }); m(cls('Response'), 'redirect')('http://a/'); m(cls('Response'), 'error')()
    new (cls('Response'))(bytes); new (cls('Response'))(new (cls('URLSearchParams'))('a=1')); new (cls('Response'))(null)
    try { new (cls('Response'))('', { status: 99 }) } catch {}
    const kinds = ['text', 'json', 'bytes', 'arrayBuffer']
    for (let index = 0; index < kinds.length; index++) {
      then(call(new (cls('Response'))('[1]'), 'Response', kinds[index]), () => {}, () => {})
      then(call(new (cls('Response'))(bytes), 'Response', kinds[index]), () => {}, () => {})
      then(call(new (cls('Response'))(new (cls('URLSearchParams'))('a=1')), 'Response', kinds[index]), () => {}, () => {})
    }`,
  'iteration': `
    const made = [new (cls('Headers'))({ a: '1', b: '2' }), new (cls('URLSearchParams'))('a=1&b=2')]
    const names = ['Headers', 'URLSearchParams'], kinds = ['entries', 'keys', 'values']
    for (let index = 0; index < made.length; index++) for (let kind = 0; kind < 3; kind++) {
      const iterator = call(made[index], names[index], kinds[kind])
      const step = m(getPrototypeOf(iterator), 'next')
      for (let at = 0; at < 4; at++) apply(step, iterator, [])
    }`,
  'encodings': `
    const encoder = new (cls('TextEncoder'))(), labels = ['utf-8', ' UTF8 ', 'latin1', 'utf-16le', 'utf-16be']
    call(encoder, 'TextEncoder', 'encode', 'é\\ud800\\u{1f600}'); call(encoder, 'TextEncoder', 'encodeInto', 'é', bytes)
    for (let index = 0; index < labels.length; index++) {
      const decoder = new (cls('TextDecoder'))(labels[index], { fatal: false, ignoreBOM: true })
      call(decoder, 'TextDecoder', 'decode', bytes, { stream: true }); call(decoder, 'TextDecoder', 'decode')
    }
    try { call(new (cls('TextDecoder'))('utf-8', { fatal: true, ignoreBOM: false }), 'TextDecoder', 'decode', bytes) } catch {}
    cls('btoa')('a\\xff'); cls('atob')('YQ=='); try { cls('btoa')('é\\u0100') } catch {} try { cls('atob')('*') } catch {}`,
  'random numbers': `
    call(cls('crypto'), 'Crypto', 'randomUUID'); call(cls('crypto'), 'Crypto', 'getRandomValues', bytes)
    try { call(cls('crypto'), 'Crypto', 'getRandomValues', {}) } catch {}`,
  'clones': `for (let index = 0; index < values.length; index++) try { cls('structuredClone')(values[index]) } catch {}`,
  'events': `
    const target = new (cls('EventTarget'))(), listener = () => {}
    call(target, 'EventTarget', 'addEventListener', 'a', listener, options); call(target, 'EventTarget', 'addEventListener', 'b', { handleEvent() { throw 1 } })
    const event = new (cls('Event'))('a', options), custom = new (cls('CustomEvent'))('b', options)
    call(target, 'EventTarget', 'dispatchEvent', event); call(target, 'EventTarget', 'dispatchEvent', custom); call(target, 'EventTarget', 'removeEventListener', 'b', listener)
    const names = ['type', 'target', 'eventPhase', 'timeStamp', 'defaultPrevented', 'returnValue', 'cancelBubble', 'isTrusted']
    for (let index = 0; index < names.length; index++) get(event, 'Event', names[index])
    call(event, 'Event', 'composedPath'); call(event, 'Event', 'preventDefault'); log('log', event, target)
    const controller = new (cls('AbortController'))(), signal = get(controller, 'AbortController', 'signal')
    call(target, 'EventTarget', 'addEventListener', 'c', listener, { __proto__: options, signal }); call(signal, 'EventTarget', 'addEventListener', 'abort', listener)
    apply(setters.onabort, signal, [listener])
    call(controller, 'AbortController', 'abort'); get(signal, 'AbortSignal', 'reason'); try { call(signal, 'AbortSignal', 'throwIfAborted') } catch {}
    m(cls('AbortSignal'), 'abort')(); m(cls('AbortSignal'), 'timeout')(5)`,
  'the log': `
    const methods = ['log', 'info', 'debug', 'warn', 'error', 'trace', 'dir', 'table', 'group', 'groupCollapsed', 'count', 'count', 'countReset', 'time', 'timeLog', 'timeEnd', 'timeEnd', 'assert', 'groupEnd', 'groupEnd']
    for (let index = 0; index < methods.length; index++) log(methods[index])
    for (let index = 0; index < values.length; index++) { log('log', values[index]); log('table', values[index]); log('log', '%s %d %i %f %j %o %O %c %%', values[index], values[index], values[index]); log('assert', false, 'said', values[index]); log('dir', values[index], { depth: 9 }) }`,
  'errors': `
    const error = new (cls('DOMException'))('m', 'AbortError'); get(error, 'DOMException', 'code'); get(error, 'DOMException', 'name')
    for (let index = 0; index < values.length; index++) cls('reportError')(values[index])`,
}

/** What the work is done on. Made before the spies are there. */
const MATERIAL = `
  const bytes = new Uint8Array([1, 0xe2, 0x82, 0xac, 255])
  const inputs = ['/a/../b?x#y', '//h/p', 'mailto:a@b', 'http://[::1]:80/', 'http://[1::192.168.0.1]/', 'http://0x7f.1/', 'http://\\u00e4\\u00f6.de/%zz', 'http://xn--4ca.de/', 'file:///C|/x/..', 'a b:c', '', '?q=\\'', '#h', '99', 'https', 'x\\ty', '\\ud800', 'web+x:/a/../b', 'blob:http://a/b']
  const setters = { onabort: Reflect.getOwnPropertyDescriptor(AbortSignal.prototype, 'onabort').set }
  for (const [name, { set }] of Object.entries(Object.getOwnPropertyDescriptors(URL.prototype))) setters[name] = set
  const loop = { a: 1 }; loop.loop = loop
  const values = [
    0, -0, 1n, 'text\\n\\'"', Symbol('s'), undefined, null, true, [1, , [2, [3, [4]]]], { a: { b: { c: { d: 1 } } }, get g() { return 1 } }, loop, new Map([[1, { a: 2 }], [{}, 3]]), new Set([1, [2]]), new Date(0), new Date(NaN), /a/gi,
    new Error('e', { cause: new TypeError('c') }), new AggregateError([new Error('x')], 'all'), new DOMException('d', 'DataCloneError'), () => {}, class A {}, new (class B extends Map {})(), Object.create(null), new Proxy({}, { __proto__: null }), bytes, bytes.buffer,
    new DataView(bytes.buffer), new WeakMap(), Promise.resolve(), Object(1), Object('s'), Object(1n), new Float64Array(3), new ArrayBuffer(8, { maxByteLength: 16 }), new Headers({ a: '1' }), Object.assign([1], { x: 1 }), new (class C { #p = 1; q = 2 })(),
  ]
  const shown = [Date, Math.max, fetch, URL, () => {}, class {}]
  const options = { bubbles: false, cancelable: true, composed: false, capture: false, once: true, passive: false, signal: undefined, detail: 1 }
  let url2
`

/** A guest whose handler is a function body that runs among the spies. */
function handlerOf(body: string, options: Partial<GuestOptions> = {}): Guest {
  const handler = `(() => { ${CALLS}
    return { default: { fetch(request) {
      watching = false
      const path = apply(m(cls('Request').prototype, 'url'), request, [])
      if (path === 'http://localhost/report') { ${REPORT} }
      watching = true
      ${body}
    } } }
  })()`
  return new Guest().load(`(() => { ${MATERIAL} return ${poisoned(handler)} })()`, options)
}

for (const [title, work] of Object.entries({ ...BRIDGE_WORK, ...WEB_API_WORK })) {
  t.test(`no spy is called: ${title}`, (t) => {
    const guest = handlerOf(`${work}; return new (cls('Response'))('done')`)
    t.same(guest.loaded, { ok: true, form: 'fetch' })
    t.equal(guest.call().body, 'done')
    t.equal(guest.call().body, 'done')
    t.same(unexpected(guest, ASKED[title]), [])
    t.end()
  })
}

const FETCHED = { ok: true, status: 200, statusText: 'OK', headers: [['a', '1']], url: 'http://up/', redirected: false }

t.test('no spy is called: answers that come later', (t) => {
  const guest = handlerOf(`
    const up = cls('fetch')('http://up/', { __proto__: null, method: 'POST', body: 'sent', headers: { b: '2' } })
    const body = call(request, 'Request', 'text')
    return then(sleep(5), () => then(body, (sent) => then(up, (response) => then(call(response, 'Response', 'text'), (received) => {
      log('log', sent, received)
      return new (cls('Response'))(sent + received, { __proto__: null, status: 201, headers: { c: '3' } })
    }))))`)
  const number = guest.start({ method: 'POST', bodyKind: 'text', body: 'asked ' })
  const canceled = guest.start()
  guest.cancel(canceled)
  guest.fireTimer(1)
  guest.settleFetch(1, FETCHED, 'text', 'told')
  t.same(guest.answers.get(number), {
    status: 201,
    headers: [
      ['c', '3'],
      ['content-type', 'text/plain;charset=UTF-8'],
    ],
    kind: 'text',
    body: 'asked told',
  })
  t.match(guest.fetches.get(1), {
    head: {
      method: 'POST',
      url: 'http://up/',
      headers: [
        ['b', '2'],
        ['content-type', 'text/plain;charset=UTF-8'],
      ],
    },
    body: 'sent',
  })
  // A promise is awaited by its constructor, and what it is resolved with is asked for a then: so ECMAScript has it for what
  // user code gives.
  t.same(
    unexpected(
      guest,
      /^(?:get )?Promise\.(?:prototype\.constructor|prototype\.then|Symbol\(Symbol\.species\))$|^get Object\.prototype\.then$/,
    ),
    [],
  )
  t.end()
})

t.test('no spy is called: answers that are none', (t) => {
  const bodies: Readonly<Record<string, string>> = {
    'a throw': `throw new (cls('TypeError'))('thrown')`,
    'a throw of an object': `throw { __proto__: null, a: 1 }`,
    'nothing': `return undefined`,
    'a text': `return 'text'`,
    'Response.error': `return m(cls('Response'), 'error')()`,
    'too many headers': `const headers = new (cls('Headers'))(); for (let index = 0; index < 101; index++) call(headers, 'Headers', 'append', 'a', '1'); return new (cls('Response'))('', { __proto__: null, headers })`,
    'a body that was read': `const response = new (cls('Response'))('a'); call(response, 'Response', 'text'); return response`,
  }
  for (const [title, body] of Object.entries(bodies)) {
    const guest = handlerOf(body)
    guest.callToFail()
    t.same(unexpected(guest, /^get Object\.prototype\.(?:cause|then|name|message|stack)$/), [], title)
  }
  t.end()
})

t.test('no spy is called: handlers of Lambda', (t) => {
  const bodies: Readonly<Record<string, string>> = {
    'a value': `return 'text'`,
    'a response': `return { __proto__: null, statusCode: 200, headers: { 'x-a': 1 }, multiValueHeaders: { 'x-b': ['c', 'd'] }, cookies: ['a=1'], body: 'YQ==', isBase64Encoded: true }`,
    'a wrong response': `return { __proto__: null, statusCode: 99 }`,
    'a loop': `return loop`,
  }
  for (const [title, body] of Object.entries(bodies)) {
    const guest = new Guest().load(
      `(() => { ${MATERIAL} return ${poisoned(`(() => { ${CALLS} return { handler(event, context) {
        if (event.rawPath === '/report') { watching = false; let names = ''; apply(each, seen, [(name) => { names += (names === '' ? '' : '\\n') + name }]); return { __proto__: null, statusCode: 200, body: names } }
        watching = true
        ${body}
      } } })()`)} })()`,
    )
    guest.start({
      url: 'http://localhost/a?b=c&d=%C3%A9+x',
      headers: [
        ['cookie', 'a=1; b=2'],
        ['x', '1'],
        ['x', '2'],
      ],
      bodyKind: 'bytes',
      body: '\xff',
    })
    t.equal(guest.answers.size + guest.failures.size, 1)
    t.same(unexpected(guest, /^get Object\.prototype\.(?:statusCode|toJSON|then|cause)$/), [], title)
  }
  t.end()
})

t.test('no spy is handed anything by which the host could be called', (t) => {
  const guest = handlerOf(`
    const upper = new (cls('TransformStream'))({ transform(chunk, controller) { controller.enqueue(chunk) } })
    const piped = get(new (cls('Response'))('piped'), 'Response', 'body').pipeThrough(upper)
    const sent = cls('fetch')('http://up/', { method: 'POST', body: get(new (cls('Response'))('stream'), 'Response', 'body') })
    then(sent, () => {}, () => {})
    if (path === 'http://localhost/forge') {
      watching = false
      apply(each, handed, [(value) => {
        if (typeof value !== 'function' || apply(has, visited, [value])) return
        for (let count = 0; count < 3; count++) try { apply(value, undefined, [666, 'forged', 'text', 'forged']) } catch {}
      }])
      return new (cls('Response'))('forged')
    }
    return new (cls('Response'))(piped)`)
  const first = guest.start()
  for (let count = 0; count < 20 && guest.answers.size === 0; count++) guest.fireTimer(999)
  t.equal(guest.answers.get(first)?.body, 'piped')
  t.equal(guest.call({ url: 'http://localhost/forge' }).body, 'forged')
  const { answers, failures, logs, timers, fetches } = guest
  t.notMatch(JSON.stringify([[...answers], [...failures], logs, [...timers], [...fetches]]), /666/)
  t.end()
})
