import t from 'tap'
import {
  defineConfig,
  defineFunction,
  invoke,
  type Env,
  type LambdaEvent,
  type LambdaHandler,
  type LambdaResult,
} from '../src/index.ts'

/** Answers with its event. */
const echo: LambdaHandler = (event) => ({ statusCode: 200, body: JSON.stringify(event) })

const given =
  (result: LambdaResult): LambdaHandler =>
  () =>
    result

async function eventOf(request: Request | string): Promise<LambdaEvent> {
  return (await (await invoke(echo, request)).json()) as LambdaEvent
}

t.test('a fetch handler gets request, variables and context', async (t) => {
  const fn = defineFunction({
    async fetch(request, env: Env, ctx) {
      const { pathname } = new URL(request.url)
      return Response.json([
        request.method,
        pathname,
        await request.text(),
        env['A'],
        ctx.functionName,
        ctx.getRemainingTimeInMillis() <= 50,
      ])
    },
  })
  const request = new Request('http://x/a', { method: 'POST', body: 'hi' })
  const response = await invoke(fn, request, { env: { A: 'b' }, functionName: 'f', timeoutMs: 50 })
  t.same(await response.json(), ['POST', '/a', 'hi', 'b', 'f', true])
})

t.test('a request can be given as a path or a URL', async (t) => {
  const fn = defineFunction({ fetch: (request) => new Response(request.url) })
  t.equal(await (await invoke(fn, '/a?b=1')).text(), 'http://localhost/a?b=1')
  t.equal(await (await invoke(fn, 'https://x/y')).text(), 'https://x/y')
  t.equal(await (await invoke(fn, '//x/y')).text(), 'http://localhost//x/y')
})

t.test('a module is called by the rules of the host', async (t) => {
  const fetch = (): Response => new Response('fetch')
  const handler = (): string => 'lambda'
  const textOf = async (response: Promise<Response>): Promise<string> => (await response).text()
  t.equal(await textOf(invoke({ default: { fetch } }, '/')), 'fetch')
  t.equal(await textOf(invoke({ default: fetch }, '/')), 'fetch')
  t.equal(await textOf(invoke({ default: fetch, handler }, '/')), 'fetch')
  t.equal(await textOf(invoke({ handler }, '/')), '"lambda"')
  t.equal(await textOf(invoke(handler, '/')), '"lambda"')
  await t.rejects(invoke({} as { handler: LambdaHandler }, '/'), { message: /There is no handler/ })
})

t.test('`this` in fetch is its object', async (t) => {
  class App {
    readonly text = 'own'
    fetch(): Response {
      return new Response(this.text)
    }
  }
  t.equal(await (await invoke(new App(), '/')).text(), 'own')
})

t.test('work given to waitUntil has ended when invoke returns, and its failure changes nothing', async (t) => {
  const done: string[] = []
  const logged = t.capture(console, 'error', () => {})
  const fn = defineFunction({
    fetch(_request, _env, ctx) {
      ctx.waitUntil(
        Promise.resolve().then(() => {
          done.push('first')
          ctx.waitUntil(Promise.resolve().then(() => done.push('second')))
        }),
      )
      ctx.waitUntil(Promise.reject(new Error('no')))
      return new Response('ok')
    },
  })
  t.equal(await (await invoke(fn, '/')).text(), 'ok')
  t.same(done, ['first', 'second'])
  t.match(logged()[0]?.args, ['rejection in waitUntil', { message: 'no' }])
})

t.test('what a handler throws is thrown, and what is no response is a TypeError', async (t) => {
  const failing = defineFunction({
    fetch: () => {
      throw new RangeError('mine')
    },
  })
  await t.rejects(invoke(failing, '/'), new RangeError('mine'))
  await t.rejects(invoke({ fetch: () => 'text' as unknown as Response }, '/'), {
    name: 'TypeError',
    message: /must return a Response/,
  })
  await t.rejects(invoke({ fetch: () => Response.error() }, '/'), { name: 'TypeError', message: /Response\.error/ })
  const read = async (): Promise<Response> => {
    const response = new Response('a')
    await response.text()
    return response
  }
  await t.rejects(invoke({ fetch: read }, '/'), { name: 'TypeError', message: /was read already/ })
})

t.test('a Lambda handler gets an event of payload format 2.0', async (t) => {
  const request = new Request('http://shop.test:81/a%20b?x=1&y=2&x=3', {
    method: 'PUT',
    headers: { 'cookie': 'a=1; b=2', 'x-id': '7', 'user-agent': 'me', 'content-type': 'text/plain' },
    body: 'é',
  })
  const event = await eventOf(request)
  t.match(event, {
    version: '2.0',
    routeKey: '$default',
    rawPath: '/a%20b',
    rawQueryString: 'x=1&y=2&x=3',
    cookies: ['a=1', 'b=2'],
    headers: { 'x-id': '7', 'host': 'shop.test:81', 'content-type': 'text/plain' },
    queryStringParameters: { x: '1,3', y: '2' },
    requestContext: {
      apiId: 'test',
      domainName: 'shop.test:81',
      domainPrefix: 'shop',
      http: { method: 'PUT', path: '/a%20b', protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: 'me' },
      stage: '$default',
      time: /^\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000$/,
    },
    body: 'é',
    isBase64Encoded: false,
  })
  t.notOk('cookie' in event.headers)
})

t.test('an event has no body, cookies or parameters if the request has none, and base64 if the body is not UTF-8', async (t) => {
  const bare = await eventOf('/')
  t.notOk('body' in bare || 'cookies' in bare || 'queryStringParameters' in bare)
  t.equal(bare.isBase64Encoded, false)
  const bytes = await eventOf(new Request('http://x/', { method: 'POST', body: new Uint8Array([255, 0]) }))
  t.match(bytes, { body: '/wA=', isBase64Encoded: true })
  const mark = await eventOf(new Request('http://x/', { method: 'POST', body: new Uint8Array([0xef, 0xbb, 0xbf, 0x41]) }))
  t.equal(mark.body, '\ufeffA')
})

t.test('a Lambda result with a status code is the response', async (t) => {
  const response = await invoke(
    given({
      statusCode: 201,
      headers: { 'X-A': 'one', 'x-n': 5, 'x-b': 'dropped' },
      multiValueHeaders: { 'x-b': ['1', '2'] },
      cookies: ['a=1', 'b=2'],
      body: '/wA=',
      isBase64Encoded: true,
    }),
    '/',
  )
  t.equal(response.status, 201)
  t.same([response.headers.get('x-a'), response.headers.get('x-n'), response.headers.get('x-b')], ['one', '5', '1, 2'])
  t.same(response.headers.getSetCookie(), ['a=1', 'b=2'])
  t.equal(response.headers.get('content-type'), 'application/json')
  t.same(new Uint8Array(await response.arrayBuffer()), new Uint8Array([255, 0]))
  t.equal((await invoke(given({ statusCode: 204, body: 'ignored' }), '/')).body, null)
})

t.test('any other Lambda result is the JSON body of a 200', async (t) => {
  const results: [LambdaResult, string][] = [
    ['text', '"text"'],
    [{ a: 1 }, '{"a":1}'],
    [undefined, 'null'],
    [null, 'null'],
    [0, '0'],
  ]
  for (const [result, text] of results) {
    const response = await invoke(given(result), '/')
    t.same([response.status, response.headers.get('content-type'), await response.text()], [200, 'application/json', text])
  }
})

t.test('a Lambda result that is no response is a TypeError', async (t) => {
  const reject = async (result: unknown, message: RegExp): Promise<unknown> =>
    t.rejects(invoke(given(result as LambdaResult), '/'), { name: 'TypeError', message })
  await reject({ statusCode: 99 }, /from 200 to 599, not 99/)
  await reject({ statusCode: 'abc' }, /from 200 to 599, not "abc"/)
  await reject({ statusCode: 200, body: { a: 1 } }, /must be a string, not a object|must be a string/)
  await reject({ statusCode: 200, body: '!', isBase64Encoded: true }, /not valid base64/)
  await reject({ statusCode: 200, cookies: Array(101).fill('a=1') }, /has 101 headers; the limit is 100/)
  await reject({ statusCode: 200, headers: { a: 'x'.repeat(65_536) } }, /have 65537 bytes; the limit is 65536/)
  await reject(1n, /cannot be written as JSON: TypeError/)
  await reject(() => {}, /cannot be written as JSON/)
})

t.test('a Lambda handler with three parameters answers by callback or by promise', async (t) => {
  const byCallback: LambdaHandler = (_event, _context, callback) => void setImmediate(callback, null, 'called')
  const byPromise: LambdaHandler = async (_event, _context, _callback) => 'promised'
  const failing: LambdaHandler = (_event, _context, callback) => callback(new Error('no'))
  t.equal(await (await invoke(byCallback, '/')).json(), 'called')
  t.equal(await (await invoke(byPromise, '/')).json(), 'promised')
  await t.rejects(invoke(failing, '/'), new Error('no'))
})

t.test('a Lambda context has what libraries read', async (t) => {
  const handler: LambdaHandler = (_event, context) => ({ ...context, left: context.getRemainingTimeInMillis() })
  t.match(await (await invoke(handler, '/', { functionName: 'f' })).json(), {
    functionName: 'f',
    invokedFunctionArn: /^arn:aws:lambda:local:\d{12}:function:f$/,
    memoryLimitInMB: '256',
    awsRequestId: /^[0-9a-f-]{36}$/,
    left: Number,
  })
})

t.test('defineFunction and defineConfig give back what they get', (t) => {
  const fn = { fetch: () => new Response() }
  const config = { name: 'a', memoryMb: 64 }
  t.equal(defineFunction(fn), fn)
  t.equal(defineConfig(config), config)
  t.end()
})
