import t from 'tap'
import { Guest } from './support/guest.ts'

function lambda(body: string, parameters = 'event, context'): Guest {
  return new Guest().load(`({ handler: async (${parameters}) => { ${body} } })`)
}

t.test('A request becomes an API Gateway event of payload 2.0', (t) => {
  const answer = lambda('return event').call({
    method: 'POST',
    url: 'http://fn.example.com:8080/a%20b?x=1&x=2&y=%C3%A4+z&empty',
    headers: [
      ['host', 'fn.example.com:8080'],
      ['cookie', 'a=1; b=2'],
      ['accept', 'text/html'],
      ['accept', 'text/plain'],
      ['user-agent', 'agent/1'],
    ],
    clientIp: '10.0.0.7',
    bodyKind: 'text',
    body: '{"a":1}',
  })
  const event = JSON.parse(answer.body) as { requestContext: { time: string; timeEpoch: number } }
  t.match(event.requestContext.time, /^\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000$/)
  t.type(event.requestContext.timeEpoch, 'number')
  t.match(event, {
    version: '2.0',
    routeKey: '$default',
    rawPath: '/a%20b',
    rawQueryString: 'x=1&x=2&y=%C3%A4+z&empty',
    cookies: ['a=1', 'b=2'],
    headers: { 'host': 'fn.example.com:8080', 'accept': 'text/html,text/plain', 'user-agent': 'agent/1' },
    queryStringParameters: { x: '1,2', y: 'ä z', empty: '' },
    requestContext: {
      accountId: '000000000000',
      apiId: 'sample',
      domainName: 'fn.example.com:8080',
      domainPrefix: 'fn',
      http: { method: 'POST', path: '/a%20b', protocol: 'HTTP/1.1', sourceIp: '10.0.0.7', userAgent: 'agent/1' },
      requestId: 'invocation-1',
      routeKey: '$default',
      stage: '$default',
    },
    body: '{"a":1}',
    isBase64Encoded: false,
  })
  t.end()
})

t.test('A body of bytes comes as base64; none is absent', (t) => {
  const guest = lambda(
    'return [event.body, event.isBase64Encoded, "body" in event, "cookies" in event, "queryStringParameters" in event]',
  )
  t.same(JSON.parse(guest.call({ bodyKind: 'bytes', body: '\x00\xff\x10' }).body), ['AP8Q', true, true, false, true])
  t.same(JSON.parse(guest.call({ url: 'http://h/' }).body), [null, false, false, false, false])
  t.end()
})

t.test('The context has the usual fields', (t) => {
  const guest = lambda('return { ...context, left: context.getRemainingTimeInMillis() > 29000 }')
  t.match(JSON.parse(guest.call().body), {
    functionName: 'sample',
    functionVersion: '0123456789abcdef',
    invokedFunctionArn: 'arn:aws:lambda:local:000000000000:function:sample',
    memoryLimitInMB: '128',
    awsRequestId: 'invocation-1',
    logGroupName: '/aws/lambda/sample',
    logStreamName: '[0123456789abcdef]',
    callbackWaitsForEmptyEventLoop: true,
    left: true,
  })
  t.end()
})

t.test('What has no statusCode is the JSON body of a 200', (t) => {
  const cases: [string, string][] = [
    ['{ message: "hi" }', '{"message":"hi"}'],
    ['"text"', '"text"'],
    ['42', '42'],
    ['null', 'null'],
    ['undefined', 'null'],
    ['[1]', '[1]'],
  ]
  for (const [value, body] of cases) {
    t.same(lambda(`return ${value}`).call(), { status: 200, headers: [['content-type', 'application/json']], kind: 'text', body })
  }
  t.end()
})

t.test('A response object is mapped with its headers and cookies', (t) => {
  const answer = lambda(`return {
    statusCode: '202',
    headers: { 'X-One': 1, 'Content-Type': 'text/html', 'X-Both': 'single' },
    multiValueHeaders: { 'X-Both': ['a', 'b'] },
    cookies: ['a=1', 'b=2; Path=/'],
    body: '<p>',
  }`).call()
  t.same(answer, {
    status: 202,
    headers: [
      ['x-both', 'a'],
      ['x-both', 'b'],
      ['x-one', '1'],
      ['content-type', 'text/html'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2; Path=/'],
    ],
    kind: 'text',
    body: '<p>',
  })
  t.match(lambda(`return { statusCode: 200, body: 'AP8Q', isBase64Encoded: true }`).call(), {
    kind: 'bytes',
    body: '\x00\xff\x10',
  })
  t.same(lambda(`return { statusCode: 204 }`).call(), { status: 204, headers: [], kind: 'none', body: '' })
  t.end()
})

t.test('A response object that is wrong is an invalid response', (t) => {
  const cases: [string, RegExp][] = [
    ['{ statusCode: 99 }', /statusCode must be a whole number from 200 to 599, not 99/],
    ['{ statusCode: "x" }', /not "x"/],
    ['{ statusCode: 200, body: {} }', /body of a Lambda response must be a string.*JSON\.stringify/],
    ['{ statusCode: 200, headers: { "a b": "c" } }', /"a b" is no header name/],
    ['{ statusCode: 200, headers: { a: "x\\ny" } }', /value of the header a/],
    ['{ statusCode: 200, body: "%", isBase64Encoded: true }', /not valid base64/],
    ['() => {}', /function, which cannot be written as JSON/],
    ['1n', /cannot be written as JSON: TypeError: .*BigInt/],
  ]
  for (const [value, message] of cases) {
    t.match(lambda(`return ${value}`).callToFail(), { outcome: 'invalid-response', message })
  }
  t.end()
})

t.test('A handler with three parameters may answer by callback, once', (t) => {
  const guest = new Guest().load(`({ handler(event, context, callback) {
    setTimeout(() => { callback(null, 'first'); callback(null, 'second'); callback(new Error('third')) })
  } })`)
  const number = guest.start()
  t.equal(guest.answers.size, 0)
  guest.fireTimer(1)
  t.equal(guest.answers.get(number)?.body, '"first"')
  t.equal(guest.failures.size, 0)
  t.end()
})

t.test('An error given to the callback is an exception', (t) => {
  const guest = new Guest().load(`({ handler(event, context, callback) { callback(new Error('no')) } })`)
  t.match(guest.callToFail(), { outcome: 'exception', message: 'Error: no' })
  t.end()
})

t.test('A handler that is not asynchronous answers by its return value', (t) => {
  t.equal(new Guest().load(`({ handler: () => 'now' })`).call().body, '"now"')
  t.match(new Guest().load(`({ handler: () => { throw new Error('now') } })`).callToFail(), { message: 'Error: now' })
  t.end()
})
