import ivm from 'isolated-vm'
import { ENTRIES, SAYS } from '@carpool/runtime'
import { RESPONSE_HEADER_LIMITS } from '@carpool/core'
import t from 'tap'
import { IS_WHOLE } from '../../../test/support/form.ts'
import { addonOf, Guest, guestOf, NATIVES, run, RUNTIME } from './support/guest.ts'

function lambda(body: string): Guest {
  return new Guest().load(`({ handler: async (event, context) => { ${body} } })`)
}

t.test('Each property of a Lambda response is read once', (t) => {
  const guest = new Guest().load(`(() => {
    const reads = {}
    const once = (name, first, later) => { reads[name] = 0; return { get: () => reads[name]++ === 0 ? first : later, enumerable: true } }
    return { handler: async (event) => {
      if (event.rawPath === '/reads') return { reads: { ...reads } }
      return Object.defineProperties({}, {
        statusCode: once('statusCode', 201, '200\\r\\nx: y'), body: once('body', 'body', {}), isBase64Encoded: once('isBase64Encoded', false, true),
        headers: once('headers', Object.defineProperty({}, 'x-a', once('x-a', '1', '\\r\\n')), null), multiValueHeaders: once('multiValueHeaders', {}, { 'x-b': '\\n' }), cookies: once('cookies', ['a=1'], ['\\n']),
      })
    } }
  })()`)
  const headers = [
    ['x-a', '1'],
    ['set-cookie', 'a=1'],
    ['content-type', 'application/json'],
  ]
  t.same(guest.call(), { status: 201, headers, kind: 'text', body: 'body' })
  const { reads } = JSON.parse(guest.call({ url: 'http://localhost/reads' }).body) as { reads: Record<string, number> }
  t.same(reads, {
    'statusCode': 1,
    'body': 1,
    'isBase64Encoded': 1,
    'headers': 1,
    'x-a': 1,
    'multiValueHeaders': 1,
    'cookies': 1,
  })
  t.end()
})

t.test('What a Response is cannot be changed by properties put on it', (t) => {
  const guest = guestOf(`
    const response = new Response('body', { status: 201, headers: { a: '1' } })
    for (const name of ['status', 'headers', 'body', 'bodyUsed', 'text', 'then', 'constructor']) Object.defineProperty(response, name, { get() { if (name === 'then') return undefined; throw new Error(name) } })
    Object.setPrototypeOf(response, null)
    return response`)
  t.same(guest.call(), {
    status: 201,
    headers: [
      ['a', '1'],
      ['content-type', 'text/plain;charset=UTF-8'],
    ],
    kind: 'text',
    body: 'body',
  })
  t.end()
})

const NO_RESPONSES = [
  '() => {}',
  'class {}',
  '(function* () {})()',
  'Symbol("s")',
  '1n',
  'new WeakMap()',
  'new Error("e")',
  '(() => { const loop = {}; loop.loop = loop; return loop })()',
  '{ status: 200 }',
  '[]',
  'new Proxy({}, {})',
  'new Request("http://a/")',
  'Object.create(Response.prototype)',
]

t.test('What is no response is refused, and the next call answers', (t) => {
  for (const result of NO_RESPONSES) {
    const guest = new Guest().load(
      `(() => { let calls = 0; return { default: { fetch: async () => calls++ === 0 ? (${result}) : new Response('next') } } })()`,
    )
    t.match(guest.callToFail(), { outcome: 'invalid-response', message: /a fetch handler must return a Response/ }, result)
    t.equal(guest.call().body, 'next')
    guest.isolate.dispose()
  }
  t.end()
})

t.test('What cannot be written as JSON is refused', (t) => {
  const results: Readonly<Record<string, RegExp>> = {
    '() => {}': /^The handler returned a function, which cannot be written as JSON\.$/,
    'Symbol("s")': /^The handler returned a symbol, which cannot be written as JSON\.$/,
    '1n': /^The result cannot be written as JSON: TypeError: .*BigInt\.$/,
    '(() => { const loop = {}; loop.loop = loop; return loop })()':
      /^The result cannot be written as JSON: TypeError: Converting circular structure/,
    '{ toJSON() { throw new Error("mine") } }': /^The result cannot be written as JSON: Error: mine\.$/,
    '(() => { class Deep { constructor(a) { this.a = a } toJSON() { return { a: this.a } } } let deep; for (let count = 0; count < 1e5; count++) deep = new Deep(deep); return deep })()':
      /^The result cannot be written as JSON, it is nested too deeply or too large: RangeError: /,
  }
  for (const [result, message] of Object.entries(results)) {
    const guest = lambda(`if (event.rawPath === '/next') return 'next'; return ${result}`)
    t.match(guest.callToFail(), { outcome: 'invalid-response', message }, result)
    t.equal(guest.call({ url: 'http://localhost/next' }).body, '"next"')
    guest.isolate.dispose()
  }
  t.end()
})

t.test('A result may be nested as deeply as one likes, as nobody reads it on the way', (t) => {
  const DEPTH = IS_WHOLE ? 1_000_000 : 200_000
  const { body } = lambda(`let deep = []; for (let count = 1; count < ${DEPTH}; count++) deep = [deep]; return deep`).call()
  t.equal(body.length, 2 * DEPTH)
  t.end()
})

t.test('Deep nesting is shown in part, or is an error that code can catch', (t) => {
  t.same(
    run(`let deep = []; for (let count = 0; count < 1e5; count++) deep = [deep]
    let cause; for (let count = 0; count < 1e5; count++) cause = new Error('e', { cause })
    const name = async (code) => { try { await code(); return 'none' } catch (error) { return error.name } }
    return Promise.all([
      name(() => structuredClone(deep)), name(() => console.log(deep, { deep }, cause)), name(() => console.table(deep)), name(() => reportError(cause)), name(() => console.dir(deep, { depth: Infinity })),
      name(() => new Response('['.repeat(1e5) + ']'.repeat(1e5)).json()),
    ])`),
    ['RangeError', 'none', 'none', 'none', 'none', 'none'],
  )
  t.end()
})

const { count: MOST, bytes: MOST_BYTES } = RESPONSE_HEADER_LIMITS
const CONTENT_TYPE_BYTES = 'content-typetext/plain;charset=UTF-8'.length

t.test('Headers have limits in number and size', (t) => {
  const fetched = (headers: string, count: number): Guest =>
    guestOf(
      `const headers = new Headers(); for (let index = 0; index < ${count}; index++) headers.append(...${headers}); return new Response('x', { headers })`,
    )
  t.equal(fetched(`['a', '1']`, MOST - 1).call().headers.length, MOST)
  t.match(fetched(`['a', '1']`, MOST).callToFail(), {
    outcome: 'invalid-response',
    message: `The response has ${MOST + 1} headers; the limit is ${MOST}.`,
  })
  t.match(fetched(`['a', '1']`, 10_000).callToFail(), { message: `The response has 10001 headers; the limit is ${MOST}.` })
  const room = MOST_BYTES - CONTENT_TYPE_BYTES - 1
  t.equal(fetched(`['a', 'x'.repeat(${room})]`, 1).call().headers.length, 2)
  t.match(fetched(`['a', 'x'.repeat(${room + 1})]`, 1).callToFail(), {
    outcome: 'invalid-response',
    message: `The response headers have ${MOST_BYTES + 1} bytes; the limit is ${MOST_BYTES}.`,
  })
  t.match(fetched(`['a', 'x'.repeat(2 ** 20)]`, 1).callToFail(), { message: /the limit is 65536/ })

  const cookies = (count: number): Guest =>
    lambda(`return { statusCode: 200, body: 'x', headers: { 'content-type': 'a/b' }, cookies: Array(${count}).fill('a=1') }`)
  t.equal(cookies(MOST - 1).call().headers.length, MOST)
  t.match(cookies(MOST).callToFail(), {
    outcome: 'invalid-response',
    message: `The response has ${MOST + 1} headers; the limit is ${MOST}.`,
  })
  t.match(lambda(`return { statusCode: 200, headers: { a: 'x'.repeat(${MOST_BYTES}) } }`).callToFail(), {
    message: `The response headers have ${MOST_BYTES + 1} bytes; the limit is ${MOST_BYTES}.`,
  })
  t.end()
})

t.test('The type of a blob is a header like any other', (t) => {
  const ofType = (type: string): Guest => guestOf(`return new Response(new Blob(['x'], { type: ${type} }))`)
  t.same(ofType(`'a"b'`).call().headers, [['content-type', 'a"b']])
  const forged = 'a/b"],["set-cookie","forged=1'
  t.same(ofType(JSON.stringify(forged)).call().headers, [['content-type', forged]])
  t.match(ofType(`'a'.repeat(${MOST_BYTES})`).callToFail(), {
    outcome: 'invalid-response',
    message: `The response headers have ${MOST_BYTES + 'content-type'.length} bytes; the limit is ${MOST_BYTES}.`,
  })
  const own = `Object.defineProperty(new Blob(['x'], { type: 'a/b' }), 'type', { value: '\\u20ac'.repeat(1e6) })`
  for (const blob of [own, `(() => { const form = new FormData(); form.append('a', ${own}); return form.get('a') })()`]) {
    t.same(guestOf(`return new Response(${blob})`).call().headers, [['content-type', 'a/b']])
  }
  t.end()
})

t.test('What a fetch sends is refused in the isolate if it is too long', (t) => {
  const guest = guestOf(
    `const message = (init) => fetch('http://example.com/', { method: 'POST', ...init }).then(() => '', (error) => error.message)
     const texts = await Promise.all([message({ headers: { a: 'x'.repeat(2 ** 20) } }), message({ body: '\\u20ac'.repeat(2 ** 28) })])
     return new Response(texts.join(' '))`,
    { maxBodyBytes: 1000 },
  )
  const { body } = guest.call()
  t.match(
    body,
    /^The head of a request has \d+ characters; the limit is 524288\. The request body has at least 268435456 bytes; the limit is 1000\.$/,
  )
  t.equal(guest.fetches.size, 0)
  t.end()
})

t.test('Headers that would end the head, or are called like members of objects', (t) => {
  for (const [name, value] of [
    ['a\\r\\nb', '1'],
    ['a', '1\\r\\nb: 2'],
    ['a', '1\\0'],
    ['', '1'],
    ['a b', '1'],
    ['a:', '1'],
    ['a', '\\u0100'],
  ]) {
    t.match(guestOf(`return new Response('x', { headers: { '${name}': '${value}' } })`).callToFail(), {
      outcome: 'exception',
      message: /^TypeError: /,
    })
    t.match(lambda(`return { statusCode: 200, headers: { '${name}': '${value}' } }`).callToFail(), {
      outcome: 'invalid-response',
    })
  }
  const own = `{ ['__proto__']: '1', constructor: '2', toString: '3' }`
  const headers = [
    ['__proto__', '1'],
    ['constructor', '2'],
    ['tostring', '3'],
  ]
  t.same(guestOf(`return new Response(null, { headers: ${own} })`).call().headers, headers)
  t.same(lambda(`return { statusCode: 200, headers: ${own} }`).call().headers, headers)
  t.end()
})

t.test('The status is a whole number from 200 to 599', (t) => {
  for (const status of ['99', '100', '102', '199', '600', '1000', 'NaN', 'Infinity', '-200', '"200 OK"', '{}', '[]']) {
    t.match(
      guestOf(`return new Response('', { status: ${status} })`).callToFail(),
      { outcome: 'exception', message: /^RangeError: The status of a response must be from 200 to 599, not / },
      status,
    )
    t.match(
      lambda(`return { statusCode: ${status} }`).callToFail(),
      { outcome: 'invalid-response', message: /^statusCode must be a whole number from 200 to 599, not / },
      status,
    )
  }
  t.match(guestOf(`return new Response(null, { status: 101 })`).callToFail(), {
    outcome: 'exception',
    message: /^RangeError: A response of status 101 needs a webSocket/,
  })
  t.match(lambda(`return { statusCode: 101 }`).callToFail(), { outcome: 'invalid-response' })
  t.match(guestOf(`return new Response('', { status: 1n })`).callToFail(), { outcome: 'exception', message: /^TypeError/ })
  t.end()
})

/**
 * Code that loops where a runtime written without care would be outside of the entry that is measured. `begin()` tells that it
 * has begun.
 */
const LOOPS: Readonly<Record<string, string>> = {
  'the name of an error': `throw new (class extends Error { get name() { begin(); for (;;); } })()`,
  'the message of an error': `throw Object.defineProperty(new Error('e'), 'message', { get() { begin(); for (;;); } })`,
  'the stack of an error': `throw Object.defineProperty(new Error('e'), 'stack', { get() { begin(); for (;;); } })`,
  'Error.prepareStackTrace': `Error.prepareStackTrace = () => { begin(); for (;;); }; throw new Error('e')`,
  'how an error is shown': `throw { [Symbol.for('nodejs.util.inspect.custom')]() { begin(); for (;;); } }`,
  'the then of a result': `return { get then() { begin(); for (;;); } }`,
  'the then of every object': `Object.defineProperty(Object.prototype, 'then', { get() { begin(); for (;;); } }); return new Response()`,
  'the constructor of a promise': `const promise = Promise.resolve(); Object.defineProperty(promise, 'constructor', { get() { begin(); for (;;); } }); return promise`,
  'how a result is shown': `return { [Symbol.for('nodejs.util.inspect.custom')]() { begin(); for (;;); } }`,
  'a stream': `return new Response(new ReadableStream({ pull() { begin(); for (;;); } }))`,
  'what is logged': `console.log('%s', { [Symbol.toPrimitive]() { begin(); for (;;); }, [Symbol.for('nodejs.util.inspect.custom')]() { begin(); for (;;); } })`,
  'a header': `return new Response('', { headers: { a: { toString() { begin(); for (;;); } } } })`,
  'after the answer': `Promise.resolve().then(() => Promise.resolve()).then(() => { begin(); for (;;); }); return new Response()`,
}

t.test('Code that loops in what it gives does so in its entry, which can be ended', async (t) => {
  for (const [title, code] of Object.entries(LOOPS)) {
    const isolate = new ivm.Isolate({ memoryLimit: 64 })
    const context = await isolate.createContext()
    const { boot, natives } = addonOf(context)
    const begun = Promise.withResolvers<string>()
    const heard = (op: number, ...[, , , text]: [number, number, number, string]): void => {
      if (op === SAYS.log && text === 'begun') begun.resolve(text)
    }
    const say = new ivm.Callback(heard, { ignored: true })
    const given = [RUNTIME, ['say', ...NATIVES].join(','), say, ...natives.map((one) => one.derefInto())]
    const entries = await boot.apply(undefined, given, { result: { reference: true } })
    const enter = async (name: string, ...args: unknown[]): Promise<unknown> => {
      const entry: ivm.Reference = await entries.get(name as never, { reference: true })
      return entry.apply(undefined, args as never[])
    }
    const source = `() => { const begin = () => console.log('begun'); return { default: { fetch: async () => { ${code} } } } }`
    const factory = await (await isolate.compileScript(source)).run(context, { reference: true })
    const options = {
      functionName: 'f',
      revision: 'r',
      limits: { memoryMb: 64, cpuMs: 1000, wallMs: 1000, streamMs: 0, idleMs: 0, concurrency: 1 },
      env: {},
    }
    await enter('load', JSON.stringify(options), factory.derefInto())
    const invoked = enter('dispatch', ENTRIES.invoke, 1, '{}', 0, '').then(
      () => 'returned',
      (error: unknown) => (error as Error).message,
    )
    t.equal(await Promise.race([begun.promise, invoked]), 'begun', title)
    isolate.dispose()
    t.match(await invoked, /disposed/, title)
  }
})
