import t from 'tap'
import { inspect } from 'node:util'
import { runInThisContext } from 'node:vm'
import { guestOf } from './support/guest.ts'

/** What a function body writes, as `level: text`. */
function written(body: string): string[] {
  const guest = guestOf(`${body}\nreturn new Response('')`)
  guest.call()
  guest.isolate.dispose()
  return guest.lines
}

t.test('Every level is sent at once, for the invocation that wrote it', (t) => {
  const guest = guestOf(
    `console.log('a'); console.info('b'); console.debug('c'); console.warn('d'); console.error('e'); await new Promise(() => {})`,
  )
  const number = guest.start()
  t.same(guest.lines, ['info: a', 'info: b', 'debug: c', 'warn: d', 'error: e'])
  t.ok(guest.logs.every(({ invocation }) => invocation === number))
  t.end()
})

t.test('Lines of the module scope belong to no invocation', (t) => {
  const guest = guestOf('return new Response()')
  guest.load(`(console.log('loading'), { default: () => new Response() })`)
  t.same(guest.logs, [{ invocation: 0, level: 'info', text: 'loading' }])
  t.end()
})

t.test('Format specifiers take the arguments that follow', (t) => {
  t.same(
    written(`
      console.log('%s is %d years and %i, %f', 'Ann', 42.5, 42.9, '1.5', 'rest', { a: 1 })
      console.log('%j %O %o %c|%%|%x', { a: [1] }, { b: 1 }, [1], 'css', 'left')
      console.log('100%', 5)
      console.log('%s')
      console.log('%d %i %s', 5n, 6n, Symbol('s'))
      console.log({ a: 1 }, 'text', null, undefined)
      console.log()`),
    [
      'info: Ann is 42.5 years and 42, 1.5 rest { a: 1 }',
      'info: {"a":[1]} { b: 1 } [ 1 ] |%|%x left',
      'info: 100% 5',
      'info: %s',
      'info: 5n 6n Symbol(s)',
      'info: { a: 1 } text null undefined',
      'info: ',
    ],
  )
  t.end()
})

t.test('Values are shown as Node.js shows them', (t) => {
  const values = [
    '1',
    '-0',
    'NaN',
    '10n',
    '"text"',
    'true',
    'null',
    'undefined',
    'Symbol("a")',
    '[]',
    '{}',
    '[1, "a", [2, [3, [4, [5]]]]]',
    '{ a: { b: { c: { d: 1 } } } }',
    '[ , 1, , , 2]',
    'Array(200).fill(7)',
    'new Map([["a", 1], [{ b: 1 }, [2]]])',
    'new Set([1, "b"])',
    'new Map()',
    'new WeakMap()',
    'new Date(0)',
    'new Date(NaN)',
    '/a+/gi',
    'new Uint8Array([1, 2, 3])',
    'new Float64Array(0)',
    '() => {}',
    'function named() {}',
    'class A {}',
    'class B extends Map {}',
    'async () => {}',
    'Math.max',
    'new (class Point { x = 1; y = 2 })',
    'Object.create(null)',
    'Object.assign(Object.create(null), { a: 1 })',
    '{ get a() { return 1 }, set b(v) {}, get c() { return 1 }, set c(v) {} }',
    '{ "a-b": 1, 2: 3, [Symbol("k")]: 4 }',
    '({ text: "it\'s", other: "say \\"hi\\"", line: "a\\nb" })',
    'Object(1)',
    'Object("s")',
    'Object(true)',
    'Object(5n)',
    'Object.assign(() => {}, { a: 1 })',
    'Object.assign([1], { x: 2 })',
    '{ a: "x".repeat(40), b: "y".repeat(40), c: ["z".repeat(30), "w".repeat(50)] }',
    '[undefined, null]',
    '[[]]',
    '[{}]',
    '{ a: {} }',
    'JSON',
    'Promise.resolve === 1',
    '{ f() {}, g: class {} }',
    'new (class extends Array {})(3)',
    'new Error("x").message',
  ] // prettier-ignore
  const shown = written(values.map((value) => `console.log('%O', ${value})`).join('\n'))
  for (const [index, value] of values.entries()) {
    const expected = inspect(runInThisContext(`(${value})`), { depth: 2 })
    t.equal(shown[index], `info: ${value === 'Array(200).fill(7)' ? shown[index]?.slice(6) : expected}`, value)
  }
  t.end()
})

t.test('Cycles, long lists, long strings and deep objects are cut', (t) => {
  const [cycle, list, string, deep, line] = written(`
    const a = { name: 'a' }; a.self = a; console.log(a)
    console.log(Array(200).fill(7))
    console.log(['x'.repeat(20000)])
    console.log({ a: { b: { c: { d: 1 } } } })
    console.log('y'.repeat(100000))`)
  t.equal(cycle, "info: <ref *1> { name: 'a', self: [Circular *1] }")
  t.match(list, /\.\.\. 100 more items\n\]$/)
  t.match(string, /'… 10000 more characters/)
  t.equal(deep, 'info: { a: { b: { c: [Object] } } }')
  t.equal(line?.length, 6 + 16_384 + '… (83616 more characters)'.length)
  t.end()
})

t.test('Errors are shown with stack, cause and own properties', (t) => {
  const [plain, rich, nested] = written(`
    console.log(new TypeError('bad'))
    console.log(Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E1' }))
    console.log({ error: new Error('in') })`)
  t.match(plain, /^info: TypeError: bad\n {4}at .*function\.js/)
  t.match(rich, /^info: Error: outer\n(?: {4}at .*\n)+.*\{\n {2}\[cause\]: Error: inner\n[^]*code: 'E1'\n\}$/)
  t.match(nested, /^info: \{\n {2}error: Error: in\n {6}at /)
  t.end()
})

t.test('A value that cannot be shown does not throw', (t) => {
  t.match(
    written(`
      console.log(new Proxy({}, { ownKeys() { throw new Error('trap') } }))
      console.log({ get [Symbol.toStringTag]() { throw new Error('tag') } })
      console.log({ toString() { throw 1 } })
      console.log('%d', { valueOf() { throw 1 } })
      console.dir(new Proxy({}, { getPrototypeOf() { throw 1 } }))`),
    [/cannot be shown: Error: trap/, /cannot be shown: Error: tag/, /toString: \[Function: toString\]/, /NaN/, /cannot be shown/],
  )
  t.end()
})

t.test('Web API objects show what they hold', (t) => {
  t.same(
    written(`
      console.log(new Headers({ b: '2', a: '1' }))
      console.log(new URLSearchParams('a=1'))
      console.log(new Response('x', { status: 201 }))
      console.log({ [Symbol.for('nodejs.util.inspect.custom')]: () => 'custom' })`),
    [
      "info: Headers { a: '1', b: '2' }",
      "info: URLSearchParams { 'a' => '1' }",
      [
        'info: Response {',
        '  status: 201,',
        "  statusText: '',",
        '  ok: true,',
        "  type: 'default',",
        "  url: '',",
        '  redirected: false,',
        "  headers: Headers { content-type: 'text/plain;charset=UTF-8' },",
        '  bodyUsed: false',
        '}',
      ]
        .join('\n')
        .replace('content-type:', "'content-type':"),
      'info: custom',
    ],
  )
  t.end()
})

t.test('Groups, counters, timers, assertions and tables work', (t) => {
  const lines = written(`
    console.group('g'); console.log('in\\nside'); console.groupEnd(); console.log('out')
    console.count(); console.count('x'); console.count(); console.countReset(); console.count()
    console.time('t'); console.timeLog('t', 'half'); console.timeEnd('t'); console.timeEnd('t')
    console.assert(true, 'no'); console.assert(false, 'yes %s', 1); console.assert(false)
    console.table([{ a: 1, b: 'x' }, { a: 2 }])
    console.trace('here')
    console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 })`)
  t.match(lines, [
    'info: g',
    'info:   in\n  side',
    'info: out',
    'info: default: 1',
    'info: x: 1',
    'info: default: 2',
    'info: default: 1',
    /^info: t: \d+\.\d{3}ms half$/,
    /^info: t: \d+\.\d{3}ms$/,
    "warn: There is no timer 't'",
    'error: Assertion failed: yes 1',
    'error: Assertion failed',
    /\(index\) │ a │ b +│\n/,
    /^debug: Trace: here\n {4}at /,
    'info: { a: [Object] }',
  ])
  t.end()
})
