import t from 'tap'
import { guestOf, run } from './support/guest.ts'

const NAME = `const nameOf = async (work) => { try { await work(); return 'no error' } catch (error) { return error.constructor.name } };`

t.test('Headers are looked up, joined, sorted and changed by name', (t) => {
  t.same(
    run(`
      const headers = new Headers([['B', '1'], ['a', ' x\\t'], ['b', '2'], ['Set-Cookie', 'c=1'], ['set-cookie', 'd=2']])
      headers.append('A', 'y')
      const list = [...headers]
      headers.set('b', '3')
      headers.delete('SET-cookie')
      const seen = []
      headers.forEach((value, name) => seen.push(name + '=' + value))
      return [list, seen, headers.get('A'), headers.get('none'), headers.has('B'), headers.getSetCookie(), [...headers.keys()], [...headers.values()]]`),
    [
      [
        ['a', 'x, y'],
        ['b', '1, 2'],
        ['set-cookie', 'c=1'],
        ['set-cookie', 'd=2'],
      ],
      ['a=x, y', 'b=3'],
      'x, y',
      null,
      true,
      [],
      ['a', 'b'],
      ['x, y', '3'],
    ],
  )
  t.end()
})

t.test('Headers come from records, pairs and other headers', (t) => {
  t.same(
    run(`
      const first = new Headers({ 'X-A': 1, b: undefined })
      const second = new Headers(first)
      second.set('x-a', '2')
      return [[...first], [...second], [...new Headers(new Map([['m', 'n']]))], [...new Headers()], [...new Headers(undefined)]]`),
    [
      [
        ['b', 'undefined'],
        ['x-a', '1'],
      ],
      [
        ['b', 'undefined'],
        ['x-a', '2'],
      ],
      [['m', 'n']],
      [],
      [],
    ],
  )
  t.end()
})

t.test('Headers refuse what is no name or value', (t) => {
  t.same(
    run(`${NAME}
      return Promise.all([
        nameOf(() => new Headers({ 'a b': '1' })), nameOf(() => new Headers({ '': '1' })), nameOf(() => new Headers({ a: 'x\\r\\ny' })),
        nameOf(() => new Headers({ a: '€' })), nameOf(() => new Headers([['a']])), nameOf(() => new Headers(null)), nameOf(() => new Headers('a')),
        nameOf(() => new Headers().get('ä')), nameOf(() => Headers()), nameOf(() => Headers.prototype.get.call({}, 'a')),
        nameOf(() => Response.error().headers.set('a', 'b')), nameOf(() => new Headers({ a: '\\n x \\n' })),
      ])`),
    [...Array<string>(11).fill('TypeError'), 'no error'],
  )
  t.end()
})

t.test('An iterator of headers sees changes made meanwhile', (t) => {
  t.same(
    run(`const headers = new Headers({ a: '1', c: '3' }); const names = []
      for (const [name] of headers) { names.push(name); if (name === 'a') headers.append('b', '2') }
      return [names, String(headers.entries()), Object.prototype.toString.call(headers)]`),
    [['a', 'b', 'c'], '[object Headers Iterator]', '[object Headers]'],
  )
  t.end()
})

t.test('The request of an invocation has method, URL, headers and body', (t) => {
  t.same(
    run(
      `const { method, url, bodyUsed, redirect, mode, credentials, cache, destination, referrer, integrity, keepalive } = request
      return [method, url, request.headers.get('X-One'), bodyUsed, await request.json(), request.bodyUsed, redirect, mode, credentials, cache, destination, referrer, integrity, keepalive, request instanceof Request, request.signal instanceof AbortSignal]`,
      {
        method: 'PUT',
        url: 'https://h/p?q',
        headers: [
          ['x-one', '1'],
          ['x-one', '2'],
        ],
        bodyKind: 'text',
        body: '{"a":1}',
      },
    ),
    [
      'PUT',
      'https://h/p?q',
      '1, 2',
      false,
      { a: 1 },
      true,
      'follow',
      'cors',
      'same-origin',
      'default',
      '',
      'about:client',
      '',
      false,
      true,
      true,
    ],
  )
  t.end()
})

t.test('A body is read in every form', (t) => {
  const forms = `
    const clone = () => request.clone()
    return [
      await clone().text(), [...new Uint8Array(await clone().arrayBuffer())], [...await clone().bytes()],
      [...new Uint8Array(await (await new Response(clone().body)).arrayBuffer())],
    ]`
  const bytes = [0xc3, 0xa4, 0x21]
  t.same(run(forms, { method: 'POST', bodyKind: 'text', body: 'ä!' }), ['ä!', bytes, bytes, bytes])
  t.same(run(forms, { method: 'POST', bodyKind: 'bytes', body: '\xc3\xa4!' }), ['ä!', bytes, bytes, bytes])
  t.same(run('return [await request.text(), request.body, request.bodyUsed]'), ['', null, false])
  t.equal(run('return new Response("\\ufeffx").text()'), 'x')
  t.same(
    run('return [...await request.formData()]', {
      method: 'POST',
      headers: [['content-type', 'application/x-www-form-urlencoded; charset=utf-8']],
      bodyKind: 'text',
      body: 'a=1&b=%20x&a=2',
    }),
    [
      ['a', '1'],
      ['b', ' x'],
      ['a', '2'],
    ],
  )
  t.end()
})

t.test('A body is read once only', (t) => {
  t.same(
    run(`${NAME}
      const response = new Response('x'); await response.text()
      const streamed = new Response('y'); await streamed.body.getReader().read()
      const locked = new Response('z'); locked.body.getReader()
      return [
        response.bodyUsed, await nameOf(() => response.text()), await nameOf(() => response.clone()), response.body.locked,
        streamed.bodyUsed, await nameOf(() => streamed.json()), locked.bodyUsed, await nameOf(() => locked.bytes()),
        await nameOf(() => new Response('no json').json()), await nameOf(() => new Response('x').formData()), await nameOf(() => Response.prototype.text.call({})),
      ]`),
    [true, 'TypeError', 'TypeError', true, true, 'TypeError', false, 'TypeError', 'SyntaxError', 'TypeError', 'TypeError'],
  )
  t.end()
})

t.test('A response takes every kind of body and names its type', (t) => {
  t.same(
    run(`
      const bytes = new Uint8Array([1, 2, 255])
      const stream = new ReadableStream({ start(controller) { controller.enqueue(bytes); controller.enqueue(new Uint8Array([3])); controller.close() } })
      const form = new FormData(); form.append('a"', '1\\n2')
      const bodies = ['text', bytes, bytes.buffer, new DataView(bytes.buffer, 1), new URLSearchParams({ a: 'b c' }), stream, 5, null, undefined, '', form]
      const results = []
      for (const body of bodies) {
        const response = new Response(body)
        results.push([response.headers.get('content-type')?.replace(/boundary=.*/, ''), response.body === null, [...await response.bytes()].length])
      }
      return results`),
    [
      ['text/plain;charset=UTF-8', false, 4],
      [null, false, 3],
      [null, false, 3],
      [null, false, 2],
      ['application/x-www-form-urlencoded;charset=UTF-8', false, 5],
      [null, false, 4],
      ['text/plain;charset=UTF-8', false, 1],
      [null, true, 0],
      [null, true, 0],
      ['text/plain;charset=UTF-8', false, 0],
      ['multipart/form-data; ', false, 159],
    ]
      .map((item) => (item[0] === null ? [undefined, ...item.slice(1)] : item))
      .map((item) => JSON.parse(JSON.stringify(item)) as unknown),
  )
  t.end()
})

t.test('A body given as bytes is copied at once', (t) => {
  t.same(
    run(
      `const bytes = new Uint8Array([1]); const response = new Response(bytes); bytes[0] = 9; return [...await response.bytes()]`,
    ),
    [1],
  )
  t.end()
})

t.test('Bodies cross the bridge as text, bytes or not at all', (t) => {
  const kindOf = (body: string): unknown[] => {
    const { kind, body: sent } = guestOf(body).call()
    return [kind, sent]
  }
  t.same(kindOf(`return new Response('ä')`), ['text', 'ä'])
  t.same(kindOf(`return new Response(new Uint8Array([0, 255]))`), ['bytes', '\x00\xff'])
  t.same(kindOf(`return new Response(null, { status: 204 })`), ['none', ''])
  t.same(kindOf(`return new Response(new Response('ä').body)`), ['bytes', '\xc3\xa4'])
  t.same(kindOf(`return new Response('x').clone()`), ['text', 'x'])
  t.same(kindOf(`const r = new Response('x'); r.body; return r`), ['bytes', 'x'])
  const guest = guestOf(`return new Response(request.body)`)
  t.same(guest.call({ method: 'POST', bodyKind: 'bytes', body: '\x01\xfe' }).body, '\x01\xfe')
  t.end()
})

t.test('A response stream that fails is an exception', (t) => {
  const failing = `return new Response(new ReadableStream({ pull() { throw new Error('dry') } }))`
  t.match(guestOf(failing).callToFail(), { outcome: 'exception', message: 'Error: dry' })
  const wrong = `return new Response(new ReadableStream({ start(c) { c.enqueue('text'); c.close() } }))`
  t.match(guestOf(wrong).callToFail(), { outcome: 'exception', message: /Uint8Array/ })
  t.end()
})

t.test('Status, status text and headers of a response are checked', (t) => {
  t.same(
    run(`${NAME}
      return Promise.all([
        nameOf(() => new Response('', { status: 199 })), nameOf(() => new Response('', { status: 600 })), nameOf(() => new Response('', { status: 'x' })),
        nameOf(() => new Response('', { statusText: 'a\\nb' })), nameOf(() => new Response('x', { status: 204 })), nameOf(() => new Response('x', { status: 304 })),
        nameOf(() => Response.json(undefined)), nameOf(() => Response.json(1, { status: 205 })), nameOf(() => Response.redirect('nope')), nameOf(() => Response.redirect('http://h', 200)),
      ])`),
    [
      'RangeError',
      'RangeError',
      'RangeError',
      'TypeError',
      'TypeError',
      'TypeError',
      'TypeError',
      'TypeError',
      'TypeError',
      'RangeError',
    ],
  )
  t.end()
})

t.test('Response.json, redirect and error make what they say', (t) => {
  t.same(
    run(`
      const show = (r) => [r.status, r.ok, r.type, r.redirected, r.url, [...r.headers]]
      return [show(Response.json({ a: 1 }, { status: 201, headers: { x: 'y' } })), show(Response.redirect('http://h/a b', 301)), show(Response.error()), show(new Response('', { headers: { 'Content-Type': 'text/html' } })), await Response.json([1]).text()]`),
    [
      [
        201,
        true,
        'default',
        false,
        '',
        [
          ['content-type', 'application/json'],
          ['x', 'y'],
        ],
      ],
      [301, false, 'default', false, '', [['location', 'http://h/a%20b']]],
      [0, false, 'error', false, '', []],
      [200, true, 'default', false, '', [['content-type', 'text/html']]],
      '[1]',
    ],
  )
  t.end()
})

t.test('A request is made from a URL or from another request', (t) => {
  t.same(
    run(`
      const first = new Request(new URL('http://h/a/../b#f'), { method: 'post', headers: { a: '1' }, body: 'x', redirect: 'manual' })
      const second = new Request(first, { headers: { b: '2' } })
      const third = new Request('http://h', { method: 'patch' })
      return [first.url, first.method, first.bodyUsed, second.method, [...second.headers], await second.text(), second.redirect, third.method, third.body]`),
    ['http://h/b#f', 'POST', true, 'POST', [['b', '2']], 'x', 'manual', 'patch', null],
  )
  t.end()
})

t.test('What an async iterable gives is a body, as in Node.js', (t) => {
  t.same(
    run(`
      const seen = []
      async function* pieces() { try { for (const text of ['a', 'b', 'c']) yield new TextEncoder().encode(text) } finally { seen.push('returned') } }
      const response = new Response(pieces())
      const request = new Request('http://h', { method: 'POST', body: pieces(), duplex: 'half' })
      const reader = new Response(pieces()).body.getReader()
      const first = (await reader.read()).value
      await reader.cancel()
      return [response.headers.get('content-type'), await response.text(), await request.text(), [...first], seen]`),
    [null, 'abc', 'abc', [97], ['returned', 'returned', 'returned']],
  )
  t.end()
})

t.test('The referrer of a request is an address', (t) => {
  t.same(
    run(`${NAME}
      const of = (referrer) => new Request('http://h', { referrer }).referrer
      return [of('http://example.com'), of('http://example.com/a b'), of(''), of('about:client'), of(undefined), new Request(new Request('http://h', { referrer: 'http://r' })).referrer, await nameOf(() => of('no address'))]`),
    ['http://example.com/', 'http://example.com/a%20b', '', 'about:client', 'about:client', 'http://r/', 'TypeError'],
  )
  t.end()
})

t.test('A request refuses what the standard refuses', (t) => {
  t.same(
    run(`${NAME}
      return Promise.all([
        nameOf(() => new Request('/relative')), nameOf(() => new Request('http://u:p@h')), nameOf(() => new Request('http://h', { method: 'TRACE' })), nameOf(() => new Request('http://h', { method: 'a b' })),
        nameOf(() => new Request('http://h', { body: 'x' })), nameOf(() => new Request('http://h', { method: 'HEAD', body: 'x' })), nameOf(() => new Request('http://h', { redirect: 'x' })), nameOf(() => new Request('http://h', { signal: {} })),
      ])`),
    Array<string>(8).fill('TypeError'),
  )
  t.end()
})

t.test('FormData holds text entries', (t) => {
  t.same(
    run(`const form = new FormData(); form.append('a', 1); form.append('a', 2); form.append('b', 'x'); form.set('a', 3); form.delete('b')
      return [[...form], form.get('a'), form.getAll('a'), form.has('b'), form.get('b')]`),
    [[['a', '3']], '3', ['3'], false, null],
  )
  t.end()
})
