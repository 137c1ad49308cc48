/** Group C1 of the list of attacks, second part: what code can make of the runtime's own code. */
import type { IsolationCase } from '../harness/isolation-case.ts'
import { finds } from './escape-reach.ts'

const LIMITS = { cpuMs: 5_000, wallMs: 20_000, memoryMb: 64 }

/** Fakes that keep what they are called with. */
const SPIES = `
  const calls = [], originals = []
  const spied = [[Function.prototype, ['call', 'apply', 'bind']], [Reflect, ['get', 'ownKeys', 'construct']], [Array.prototype, ['push', 'map', 'join', 'slice', 'forEach', 'shift', 'concat']],
    [JSON, ['stringify', 'parse']], [Promise.prototype, ['then', 'catch', 'finally']], [Promise, ['resolve', 'reject', 'all']], [Map.prototype, ['get', 'set', 'has', 'delete']], [Set.prototype, ['add', 'has']], [WeakMap.prototype, ['get', 'set', 'has']],
    [String.prototype, ['split', 'slice', 'indexOf', 'toLowerCase', 'replace', 'trim', 'startsWith', 'charCodeAt']], [RegExp.prototype, ['exec', 'test']], [Object, ['defineProperty', 'keys', 'entries', 'assign', 'freeze', 'create', 'getOwnPropertyDescriptor']], [Number, ['isInteger']], [Uint8Array, ['from']]]
  const { apply } = Reflect
  const spy = (target, key) => {
    const original = target[key]
    originals[originals.length] = [target, key, original]
    target[key] = function (...args) { calls[calls.length] = [key, this, args]; return apply(original, this, args) }
  }
  const arm = () => { for (const [target, keys] of spied) for (const key of keys) spy(target, key) }
  const disarm = () => { for (let index = originals.length - 1; index >= 0; index--) { const [target, key, original] = originals[index]; target[key] = original } }
  const use = async () => {
    const answer = await fetch(process.env.UPSTREAM + '?spied')
    await answer.text()
    await new Promise((done) => setTimeout(done, 1))
    console.log('spied', { a: [1] }, new Error('x'))
    crypto.getRandomValues(new Uint8Array(4)); crypto.randomUUID()
    new URL('http://a/b?c=d').searchParams.get('c'); new Headers({ a: 'b' }).get('a'); structuredClone({ a: [1] }); new TextDecoder().decode(new TextEncoder().encode('x')); btoa('x')
  }
  const judge = (found) => {
    const secrets = ['invocationId', 'clientIp', 'x-carpool', 'maxBodyBytes', 'handlerExport']
    const bridge = ['answer', 'fail', 'loaded', 'drain', 'random', 'startTimer', 'startFetch']
    if (calls.length === 0) found.push('the spies saw nothing at all')
    for (const [key, self, args] of calls) for (const value of [self, ...args]) {
      if (typeof value === 'string' && secrets.some((secret) => value.includes(secret))) found.push(key + ': ' + value.slice(0, 60))
      if (typeof value === 'function' && bridge.includes(value.name)) found.push(key + ' of ' + value.name)
    }
  }
`

const TAMPERING: readonly IsolationCase[] = [
  finds(
    'E04a',
    'what the runtime says to itself, by built-ins replaced in the module scope',
    'await use(); [].push(1); disarm(); judge(found)',
    {
      scope: `${SPIES}; arm();`,
      again: 'any',
    },
  ),
  finds(
    'E04b',
    'the same, by built-ins replaced between awaits',
    `${SPIES}; await use(); arm(); await use(); [].push(1); disarm(); judge(found)`,
    { again: 'any' },
  ),
  finds(
    'E07a',
    'the runtime, by symbols that all objects inherit',
    `
    const trip = (name) => ({ configurable: true, get() { found[found.length] = name; return undefined } })
    for (const symbol of [Symbol.isConcatSpreadable, Symbol.toPrimitive, Symbol.match, Symbol.replace, Symbol.split]) Object.defineProperty(Object.prototype, symbol, { configurable: true, get() { return undefined } })
    for (const type of [Array, Promise, ArrayBuffer, RegExp, Map]) Object.defineProperty(type, Symbol.species, { configurable: true, get() { throw new Error('species') } })
    const text = await (await fetch(env.UPSTREAM + '?species')).text()
    if (text !== 'pong species') found.push(text)
    if (new URL('http://a/?b=c').searchParams.get('b') !== 'c') found.push('url')`,
    { again: 'any' },
  ),
  finds(
    'E07b',
    'the runtime, by an iterator of arrays that throws',
    `
    Array.prototype[Symbol.iterator] = () => { throw new Error('iterator') }
    Object.getPrototypeOf(new Map().entries()).next = () => { throw new Error('next') }
    const response = await fetch(env.UPSTREAM + '?iterator', { headers: { a: 'b' } })
    if (await response.text() !== 'pong iterator') found[0] = 'fetch'
    if (new Headers({ a: 'b' }).get('a') !== 'b') found[1] = 'headers'`,
    { again: 'any' },
  ),
  finds(
    'E07c',
    'the runtime, by setters of array elements',
    `
    for (const index of [0, 1, 2, 3]) Object.defineProperty(Array.prototype, index, { configurable: true, get() { return undefined }, set(value) { throw new Error('setter') } })
    const headers = new Headers(); headers.append('a', 'b')
    const response = await fetch(env.UPSTREAM + '?setter', { headers })
    const text = await response.text()
    console.log('x', 'y')
    for (const index of [0, 1, 2, 3]) delete Array.prototype[index]
    if (text !== 'pong setter') found.push(text)`,
    { again: 'any' },
  ),
  finds(
    'E07d',
    'the runtime, by properties that all objects inherit',
    `
    for (const name of ['status', 'headers', 'method', 'url', 'body', 'kind', 'text', 'redirect', 'signal', 'toJSON', 'value', 'done', 'get', 'set', 'writable', 'enumerable', 'configurable'])
      Object.defineProperty(Object.prototype, name, { __proto__: null, configurable: true, get() { return undefined }, set() {} })
    const text = await (await fetch(env.UPSTREAM + '?inherited')).text()
    if (text !== 'pong inherited') found[0] = text`,
    { again: 'any' },
  ),
  {
    ...finds('E06', 'a then of all objects, which loops when a fetch is awaited', ''),
    handler: `Object.defineProperty(Object.prototype, 'then', { get() { for (;;); } }); await fetch(env.UPSTREAM); return new Response('fine')`,
    verdict: 'K',
    billed: 'cap',
    limits: { ...LIMITS, cpuMs: 100 },
    expect: { status: 502, code: 'cpu-exceeded' },
  },
  {
    ...finds('E11a', 'a promise whose constructor loops', ''),
    handler: `const answer = Promise.resolve(new Response()); Object.defineProperty(answer, 'constructor', { get() { for (;;); } }); return answer`,
    verdict: 'K',
    billed: 'cap',
    limits: { ...LIMITS, cpuMs: 100 },
    expect: { status: 502, code: 'cpu-exceeded' },
  },
  {
    ...finds('E11b', 'a promise whose species loops', ''),
    handler: `class Own extends Promise { static get [Symbol.species]() { for (;;); } } return new Own((done) => done(new Response()))`,
    verdict: 'K',
    billed: 'cap',
    limits: { ...LIMITS, cpuMs: 100 },
    expect: { status: 502, code: 'cpu-exceeded' },
  },
  {
    ...finds('E25a', 'globals overwritten', ''),
    handler: `for (const name of ['fetch', 'console', 'crypto', 'Response', 'Request', 'Headers', 'setTimeout', 'Promise', 'JSON', 'Object', 'process']) globalThis[name] = undefined; return new OwnResponse('spoilt')`,
    expect: { body: 'spoilt' },
  },
  {
    ...finds('E25b', 'globals deleted', ''),
    // It deletes what it is made of.
    isRepeatable: false,
    handler: `for (const name of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[name] } catch {} return new OwnResponse('spoilt')`,
    expect: { body: 'spoilt' },
  },
  {
    ...finds('E25c', 'globals frozen', ''),
    handler: `const { ownKeys, getPrototypeOf } = Reflect; for (const name of ownKeys(globalThis)) { const value = globalThis[name]; if (typeof value === 'function') { Object.freeze(value); if (value.prototype) Object.freeze(value.prototype) } } Object.preventExtensions(globalThis); return new OwnResponse('spoilt')`,
    expect: { body: 'spoilt' },
  },
  {
    ...finds('E25d', 'a proxy behind the global object', ''),
    handler: `const trap = { get() { throw new Error('get') }, has() { return true }, set() { throw new Error('set') } }; try { Object.setPrototypeOf(globalThis, new Proxy({}, trap)) } catch {} try { Object.setPrototypeOf(Object.prototype, new Proxy({}, trap)) } catch {} return new OwnResponse('spoilt')`,
    expect: { body: 'spoilt' },
    again: 'any',
  },
]

export const ESCAPE_TAMPERING_CASES: readonly IsolationCase[] = TAMPERING
