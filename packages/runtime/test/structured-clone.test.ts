import t from 'tap'
import { run } from './support/guest.ts'

t.test('Values are copied deeply, of their own kind', (t) => {
  t.same(
    run(`
      class Point { constructor() { this.x = 1 } get y() { return 2 } }
      const shared = { s: 1 }
      const value = { n: 1n, d: new Date(5), r: /a/gi, m: new Map([[shared, new Set([1, shared])]]), u: new Uint16Array([1, 2]), v: new DataView(new ArrayBuffer(4), 1, 2), a: [ , 1], p: new Point(), nul: null, und: undefined, neg: -0, bool: Object(true), str: Object('s'), big: Object(2n) }
      value.self = value
      const copy = structuredClone(value)
      const [key] = copy.m.keys()
      return [
        copy !== value, copy.self === copy, copy.n === 1n, copy.d instanceof Date && +copy.d, String(copy.r), copy.r.lastIndex, key !== shared && copy.m.get(key).has(key), [...copy.u], copy.u.constructor.name,
        copy.v.byteOffset, copy.v.byteLength, 0 in copy.a, copy.a.length, Object.getPrototypeOf(copy.p) === Object.prototype, Object.keys(copy.p), 'und' in copy, Object.is(copy.neg, -0), typeof copy.bool, copy.str.length, typeof copy.big]`),
    [
      true,
      true,
      true,
      5,
      '/a/gi',
      0,
      true,
      [1, 2],
      'Uint16Array',
      1,
      2,
      false,
      2,
      true,
      ['x'],
      true,
      true,
      'object',
      1,
      'object',
    ],
  )
  t.end()
})

t.test('Errors keep their class, message, stack and cause', (t) => {
  t.same(
    run(`
      const error = new RangeError('far', { cause: new TypeError('why') }); error.extra = 1
      const copy = structuredClone(error)
      const odd = structuredClone(Object.assign(new Error('m'), { name: 'Odd' }))
      const dom = structuredClone(new DOMException('d', 'DataCloneError'))
      return [copy instanceof RangeError, copy.message, copy.stack === error.stack, copy.cause instanceof TypeError, 'extra' in copy, odd.name, dom instanceof DOMException, dom.code]`),
    [true, 'far', true, true, false, 'Error', true, 25],
  )
  t.end()
})

t.test('Views of one buffer share their copy', (t) => {
  t.same(
    run(
      `const buffer = new ArrayBuffer(8); const [a, b] = structuredClone([new Uint8Array(buffer, 4), new Uint32Array(buffer)]); a[0] = 7; return [b[1], new Uint8Array(buffer)[4]]`,
    ),
    [7, 0],
  )
  t.end()
})

t.test('A transferred buffer is emptied at its source', (t) => {
  t.same(
    run(
      `const bytes = new Uint8Array([1, 2]); const copy = structuredClone({ bytes }, { transfer: [bytes.buffer] }); return [[...copy.bytes], bytes.length, bytes.buffer.detached]`,
    ),
    [[1, 2], 0, true],
  )
  t.end()
})

t.test('What cannot be cloned throws a DataCloneError', (t) => {
  const values = [
    '() => {}',
    'Symbol()',
    'new WeakMap()',
    'new WeakSet()',
    'Promise.resolve()',
    'new Headers()',
    'new URL("http://h")',
    'new Response()',
    '{ a: [() => {}] }',
    'new Map([[1, Symbol()]])',
    'new AbortController().signal',
  ]
  const works = values.map((value) => `() => structuredClone(${value})`).join(', ')
  const names = run(`
    const nameOf = (work) => { try { work() } catch (error) { return error instanceof DOMException && error.name } }
    return [${works}].map(nameOf)`)
  t.same(
    names,
    values.map(() => 'DataCloneError'),
  )
  t.equal(run(`try { structuredClone() } catch (error) { return error.name }`), 'TypeError')
  t.equal(run(`try { structuredClone(1, { transfer: [{}] }) } catch (error) { return error.name }`), 'DataCloneError')
  t.end()
})
