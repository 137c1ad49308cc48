import t from 'tap'
import { Guest, guestOf } from './support/guest.ts'

const HELLO = `fetch() { return new Response('hello') }`

t.test('A default export with a fetch method is called as a method', (t) => {
  const guest = new Guest().load(`({ default: { word: 'hi', fetch() { return new Response(this.word) } } })`)
  t.same(guest.loaded, { ok: true, form: 'fetch' })
  t.same(guest.call(), { status: 200, headers: [['content-type', 'text/plain;charset=UTF-8']], kind: 'text', body: 'hi' })
  t.end()
})

t.test('A function as default export is a fetch handler', (t) => {
  const guest = new Guest().load(`({ default: () => new Response('hi') })`)
  t.same(guest.loaded, { ok: true, form: 'fetch' })
  t.equal(guest.call().body, 'hi')
  t.end()
})

t.test('module.exports may itself be the handler', (t) => {
  t.equal(new Guest().load(`({ ${HELLO} })`).call().body, 'hello')
  t.equal(new Guest().load(`() => new Response('hello')`).call().body, 'hello')
  t.end()
})

t.test('An export called handler is a Lambda handler', (t) => {
  const guest = new Guest().load(`({ handler: async () => ({ statusCode: 201, body: 'made' }) })`)
  t.same(guest.loaded, { ok: true, form: 'lambda' })
  t.same(guest.call(), { status: 201, headers: [['content-type', 'application/json']], kind: 'text', body: 'made' })
  t.end()
})

t.test('handlerExport chooses among the exports', (t) => {
  const source = `({ default: { ${HELLO} }, other: { fetch: () => new Response('other') }, lambda: async () => 'l', data: 1 })`
  t.same(new Guest().load(source, { handlerExport: 'other' }).loaded, { ok: true, form: 'fetch' })
  t.same(new Guest().load(source, { handlerExport: 'lambda' }).loaded, { ok: true, form: 'lambda' })
  t.match(new Guest().load(source, { handlerExport: 'data' }).loaded, {
    ok: false,
    code: 'no-handler',
    message:
      'The export data is neither a function nor an object with a fetch method; the module exports default, other, lambda, data.',
  })
  t.match(new Guest().load(source, { handlerExport: 'absent' }).loaded, {
    code: 'no-handler',
    message: /^The export absent is not there;/,
  })
  t.end()
})

t.test('A module without a handler is refused with what it exports', (t) => {
  t.match(new Guest().load(`({ config: {}, helper() {} })`).loaded, {
    ok: false,
    code: 'no-handler',
    message: /^Expected a default export .*; the module exports config, helper\.$/,
  })
  t.match(new Guest().load(`({})`).loaded, { code: 'no-handler', message: /the module exports nothing/ })
  t.match(new Guest().load(`undefined`).loaded, { code: 'no-handler', message: /the module exports nothing/ })
  t.end()
})

t.test('A module scope that throws is load-failed, with message and stack', (t) => {
  t.match(new Guest().load(`(() => { throw new TypeError('broken') })()`).loaded, {
    ok: false,
    code: 'load-failed',
    message: 'TypeError: broken',
    stack: /TypeError: broken\n {4}at .*function\.js/,
  })
  t.match(new Guest().load(`({ get default() { throw 'no' } })`).loaded, { code: 'load-failed', message: "Uncaught 'no'" })
  t.end()
})

t.test('A module scope that awaits is loaded when it has ended', (t) => {
  const guest = new Guest().load(
    `(async () => { await new Promise((resolve) => setTimeout(resolve)); return { default: { ${HELLO} } } })()`,
  )
  t.equal(guest.loaded, undefined)
  guest.fireTimer(1)
  t.same(guest.loaded, { ok: true, form: 'fetch' })
  t.equal(guest.call().body, 'hello')
  t.match(new Guest().load(`Promise.reject(new Error('late'))`).loaded, {
    ok: false,
    code: 'load-failed',
    message: 'Error: late',
  })
  t.match(new Guest().load(`Promise.resolve({ a: 1 })`).loaded, { ok: false, code: 'no-handler', message: /exports a\./ })
  t.end()
})

t.test('A throw and a rejection are exceptions', (t) => {
  const thrown = new Guest().load(`({ default: { fetch() { throw new RangeError('far') } } })`).callToFail()
  t.match(thrown, { outcome: 'exception', message: 'RangeError: far', stack: /function\.js/ })
  const rejected = guestOf(`await null; throw new Error('late', { cause: new TypeError('root') })`).callToFail()
  t.match(rejected, { outcome: 'exception', message: 'Error: late', stack: /Caused by: TypeError: root/ })
  t.match(guestOf(`return Promise.reject()`).callToFail(), { outcome: 'exception', message: 'Uncaught undefined', stack: '' })
  t.end()
})

t.test('What is no Response is an invalid response', (t) => {
  t.match(guestOf(`return 'text'`).callToFail(), {
    outcome: 'invalid-response',
    message: "The handler returned 'text': a fetch handler must return a Response.",
  })
  t.match(guestOf(``).callToFail(), { outcome: 'invalid-response', message: /returned undefined/ })
  t.match(guestOf(`return { status: 200 }`).callToFail(), { outcome: 'invalid-response', message: /\{ status: 200 \}/ })
  t.match(guestOf(`return Response.error()`).callToFail(), { outcome: 'invalid-response' })
  t.match(guestOf(`const r = new Response('a'); await r.text(); return r`).callToFail(), {
    outcome: 'invalid-response',
    message: /read already/,
  })
  t.match(guestOf(`return new Proxy({}, { ownKeys() { throw 1 } })`).callToFail(), { outcome: 'invalid-response' })
  t.end()
})

t.test('A thenable that is no promise is followed', (t) => {
  const guest = new Guest().load(`({ default: { fetch: () => ({ then(resolve) { resolve(new Response('then')) } }) } })`)
  t.equal(guest.call().body, 'then')
  t.end()
})

t.test('A response kept in a variable answers again and again', (t) => {
  const guest = new Guest().load(`(() => { const kept = new Response('kept'); return { default: { fetch: () => kept } } })()`)
  t.equal(guest.call().body, 'kept')
  t.equal(guest.call().body, 'kept')
  t.end()
})

t.test('env and process.env hold the variables of the function', (t) => {
  const options = { env: { COLOUR: 'red', __proto__x: '1' } }
  const guest = guestOf(`return Response.json([env.COLOUR, process.env.COLOUR, Object.keys(process)])`, options)
  t.same(JSON.parse(guest.call().body), ['red', 'red', ['env']])
  t.end()
})

t.test('ctx tells about the invocation and takes background work', (t) => {
  const guest = guestOf(`
    ctx.passThroughOnException()
    ctx.waitUntil(Promise.reject(new Error('behind')))
    return Response.json([ctx.invocationId, ctx.functionName, ctx.revision, ctx.getRemainingTimeInMillis() > 29000])`)
  t.same(JSON.parse(guest.call().body), ['invocation-1', 'sample', '0123456789abcdef', true])
  t.match(guest.logs, [{ invocation: 1, level: 'error', text: /^Uncaught rejection in waitUntil: Error: behind/ }])
  t.equal(guest.rejections.length, 1, 'it is one of those that are counted')
  t.end()
})

t.test('A canceled invocation aborts its signal, and its answer no longer counts', (t) => {
  const guest = guestOf(`
    request.signal.addEventListener('abort', () => console.log(request.signal.reason.name))
    await new Promise((resolve) => setTimeout(resolve, 10))
    console.log(request.signal.aborted)
    return new Response('late')`)
  const number = guest.start()
  guest.cancel(number)
  guest.cancel(number)
  guest.fireTimer(1)
  t.same(guest.lines, ['info: AbortError', 'info: true'])
  t.equal(guest.answers.size + guest.failures.size, 0)
  t.same(guest.canceled, [number, number])
  t.end()
})

t.test('A signal that is first asked for after the cancel is aborted', (t) => {
  const guest = guestOf(`await new Promise((resolve) => setTimeout(resolve)); console.log(request.signal.aborted)`)
  guest.cancel(guest.start())
  guest.fireTimer(1)
  t.same(guest.lines, ['info: true'])
  t.end()
})
