import t from 'tap'
import { guestOf } from './support/guest.ts'

const OK = {
  ok: true,
  status: 200,
  statusText: 'OK',
  headers: [['content-type', 'application/json']],
  url: 'http://up/final',
  redirected: true,
}

t.test('fetch sends head and body over the bridge and gives the response', (t) => {
  const guest = guestOf(`
    const response = await fetch('http://up/x?y', { method: 'post', headers: { 'X-A': '1' }, body: new URLSearchParams({ a: '1' }) })
    const { status, statusText, ok, url, redirected, type } = response
    return Response.json([status, statusText, ok, url, redirected, type, response.headers.get('content-type'), await response.json()])`)
  const number = guest.start()
  t.same(guest.fetches.get(1), {
    invocation: number,
    head: {
      method: 'POST',
      url: 'http://up/x?y',
      headers: [
        ['x-a', '1'],
        ['content-type', 'application/x-www-form-urlencoded;charset=UTF-8'],
      ],
      redirect: 'follow',
    },
    kind: 'text',
    body: 'a=1',
  })
  guest.settleFetch(1, OK, 'bytes', '{"w":"\xc3\xa4"}')
  t.same(JSON.parse(guest.answers.get(number)!.body), [
    200,
    'OK',
    true,
    'http://up/final',
    true,
    'basic',
    'application/json',
    { w: 'ä' },
  ])
  t.end()
})

t.test('fetch takes a URL, a Request and every kind of body', (t) => {
  const guest = guestOf(`
    fetch(new URL('http://up/url'))
    fetch(new Request('http://up/request', { method: 'PUT', body: new Uint8Array([0, 255]) }), { headers: { a: 'b' }, redirect: 'manual' })
    fetch('http://up/stream', { method: 'POST', body: new Response('st').body, duplex: 'half' })
    return new Response()`)
  guest.call()
  const sent = [...guest.fetches.values()].map(({ head, kind, body }) => [
    head.method,
    head.url,
    head.headers,
    head.redirect,
    kind,
    body,
  ])
  t.same(sent, [
    ['GET', 'http://up/url', [], 'follow', 'none', ''],
    ['PUT', 'http://up/request', [['a', 'b']], 'manual', 'bytes', '\x00\xff'],
    ['POST', 'http://up/stream', [], 'follow', 'bytes', 'st'],
  ])
  t.end()
})

t.test('A fetch that the host refuses rejects with a TypeError', (t) => {
  const guest = guestOf(`await fetch('http://up')`)
  const number = guest.start()
  guest.settleFetch(1, { ok: false, message: 'The address is not allowed.' })
  t.match(guest.failures.get(number), { outcome: 'exception', message: 'TypeError: The address is not allowed.' })
  t.end()
})

t.test('What fetch cannot send rejects and never throws', (t) => {
  const guest = guestOf(`
    const names = []
    for (const args of [['nope'], ['http://h', { body: 'x' }], [], ['http://h', { headers: { 'a b': 'c' } }], [Symbol()]]) {
      const promise = fetch(...args)
      await promise.catch((error) => names.push(error.name))
    }
    return Response.json(names)`)
  t.same(JSON.parse(guest.call().body), Array(5).fill('TypeError'))
  t.equal(guest.fetches.size, 0)
  t.end()
})

t.test('An aborted signal stops the fetch at the host', (t) => {
  const guest = guestOf(`
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')))
    await fetch('http://up', { signal: controller.signal })`)
  const number = guest.start()
  guest.fireTimer(1)
  t.same(guest.stoppedFetches, [1])
  t.match(guest.failures.get(number), { message: 'Error: enough' })
  guest.settleFetch(1, OK)
  t.end()
})

t.test('A signal that is aborted already sends nothing', (t) => {
  const guest = guestOf(`await fetch('http://up', { signal: AbortSignal.abort() })`)
  t.match(guest.callToFail(), { message: 'AbortError: The operation was aborted.' })
  t.equal(guest.fetches.size, 0)
  t.end()
})

t.test('Aborting after the response has come stops nothing', (t) => {
  const guest = guestOf(`
    const controller = new AbortController()
    const response = await fetch('http://up', { signal: controller.signal })
    controller.abort()
    return response`)
  const number = guest.start()
  guest.settleFetch(1, OK, 'bytes', 'body')
  t.same(guest.stoppedFetches, [])
  t.match(guest.answers.get(number), { status: 200, kind: 'bytes', body: 'body' })
  t.end()
})

t.test('What follows a fetch belongs to the invocation that started it', (t) => {
  const guest = guestOf(
    `await fetch('http://up/' + request.method); console.log('done'); fetch('http://up/next'); return new Response()`,
  )
  const first = guest.start()
  const second = guest.start()
  guest.settleFetch(2, OK)
  guest.settleFetch(1, OK)
  t.same(
    guest.logs.map(({ invocation }) => invocation),
    [second, first],
  )
  t.same([guest.fetches.get(3)?.invocation, guest.fetches.get(4)?.invocation], [second, first])
  t.end()
})

t.test('The headers of a fetched response are immutable; those of a copy are not', (t) => {
  const guest = guestOf(`
    const response = await fetch('http://up')
    let name; try { response.headers.set('a', 'b') } catch (error) { name = error.name }
    const copy = new Response(response.body, response); copy.headers.set('a', 'b')
    return Response.json([name, copy.headers.get('a'), copy.headers.get('content-type'), copy.status, await copy.text()])`)
  const number = guest.start()
  guest.settleFetch(1, { ...OK, status: 203 }, 'bytes', 'x')
  t.same(JSON.parse(guest.answers.get(number)!.body), ['TypeError', 'b', 'application/json', 203, 'x'])
  t.end()
})

t.test('fetch sends what a request holds, whatever user code made of its properties', (t) => {
  const guest = guestOf(`
    for (const name of ['method', 'url', 'headers', 'redirect', 'signal', 'body']) {
      for (const value of ['"', 5, undefined, null, { toJSON: () => undefined }]) {
        class Lying extends Request {}
        Object.defineProperty(Lying.prototype, name, { get: () => value })
        fetch(new Lying('http://up/subclass', { method: 'PUT', headers: { a: 'b' }, redirect: 'manual' }))
      }
    }
    const honest = new Request('http://up/prototype', { method: 'PUT', headers: { a: 'b' }, redirect: 'manual' })
    for (const name of ['method', 'url', 'headers', 'redirect', 'signal', 'body']) {
      Object.defineProperty(Request.prototype, name, { get: () => '"' })
    }
    fetch(honest)
    fetch(honest.clone())
    fetch(request)
    return new Response()`)
  guest.call()
  const heads = [...guest.fetches.values()].map(({ head }) => head)
  const held = { method: 'PUT', headers: [['a', 'b']], redirect: 'manual' }
  t.same(heads, [
    ...Array.from({ length: 30 }, () => ({ url: 'http://up/subclass', ...held })),
    { url: 'http://up/prototype', ...held },
    { url: 'http://up/prototype', ...held },
    { method: 'GET', url: 'http://localhost:8080/path?a=1', headers: [['host', 'localhost:8080']], redirect: 'follow' },
  ])
  t.end()
})

t.test('What fetch sends can be read, whatever user code made of the built-ins', (t) => {
  const guest = guestOf(`
    let asked = 0
    Object.defineProperty(Object.prototype, 'redirect', { get: () => (asked++ === 0 ? undefined : '"') })
    fetch('http://up', { cache: 'no-store' })
    for (const name of ['toWellFormed', 'toLowerCase', 'toUpperCase', 'slice', 'replace']) {
      const original = String.prototype[name]
      for (const value of [5, undefined, '"', { toJSON: () => undefined }]) {
        String.prototype[name] = () => value
        fetch('http://up/', { method: 'put', headers: { 'X-Y-Z': '1' } }).catch(() => {})
      }
      String.prototype[name] = original
    }
    return new Response()`)
  guest.call()
  t.ok(guest.fetches.size > 0)
  for (const { head } of guest.fetches.values()) {
    t.match(head, { method: String, url: String, redirect: 'follow' })
    for (const pair of head.headers) t.match(pair, [String, String])
  }
  t.end()
})

t.test('Bodies of fetches that have too many bytes together do not leave the isolate, though some are stopped at once', (t) => {
  const code = `
    const body = 'x'.repeat(12 * 1024 * 1024)
    const stop = new AbortController()
    const send = (signal) => fetch('http://up/', { method: 'POST', body, signal })
    const sent = [send(stop.signal), send(), send()]
    stop.abort()
    sent.push(send())
    const ended = await Promise.all([0, 2, 3].map((index) => sent[index].catch((error) => error.message)))
    setTimeout(() => { send(); send() }, 0)
    return Response.json(ended)`
  const guest = guestOf(code, { maxBodyBytes: 16 * 1024 * 1024 })
  const refused = 'The request bodies of fetches that begin together may have 33554432 bytes, not more.'
  t.same(JSON.parse(guest.call().body), ['The operation was aborted.', refused, refused])
  t.same([...guest.fetches.keys()], [1, 2])
  guest.fireTimer(1)
  t.same([...guest.fetches.keys()], [1, 2, 3, 4], 'in the next entry there is room again: what is open is for the host to count')
  t.end()
})
