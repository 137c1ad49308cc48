// Uses of packages that send and answer requests, each against an app of its own or against the server that it is given.
import { Readable } from 'node:stream'

/** `upstream`: a server that says what it was asked, at /echo, and gives fixed answers. */
export const casesOf = (upstream) => ({
  'axios': async () => {
    const { default: axios } = await import('axios')
    const { data, status } = await axios.post(`${upstream}/echo`, { a: 1 }, { headers: { 'x-test': 'y' }, params: { q: '1 2' } })
    const failed = await axios.get(`${upstream}/status/404`).catch((error) => [error.code, error.response.status, error.message])
    return [status, data.method, data.url, data.body, data.headers['x-test'], failed]
  },
  'ky': async () => {
    const { default: ky } = await import('ky')
    const json = await ky.post(`${upstream}/echo`, { json: { foo: true } }).json()
    return [
      json.body,
      json.headers['content-type'],
      await ky.get(`${upstream}/status/500`, { retry: 0 }).catch((error) => [error.name, error.response.status]),
    ]
  },
  'node-fetch': async () => {
    const { default: fetch, FormData, Headers } = await import('node-fetch')
    const response = await fetch(`${upstream}/echo`, { method: 'POST', body: 'a=1', headers: new Headers({ 'x-test': 'z' }) })
    const echoed = await response.json()
    return [
      response.status,
      response.ok,
      echoed.method,
      echoed.body,
      echoed.headers['x-test'],
      typeof FormData,
      (await fetch(`${upstream}/redirect`)).status,
    ]
  },
  'got': async () => {
    const { default: got } = await import('got')
    const { data } = { data: await got.post(`${upstream}/echo`, { json: { hello: 'world' } }).json() }
    const failed = await got(`${upstream}/status/404`, { retry: { limit: 0 } }).catch((error) => [
      error.name,
      error.response.statusCode,
    ])
    return [data.method, data.body, failed, (await got(`${upstream}/redirect`)).body]
  },
  'node:http': async () => {
    const { get, request } = await import('node:http')
    const read = (response) =>
      new Promise((resolve, reject) => {
        let body = ''
        response
          .setEncoding('utf8')
          .on('data', (part) => (body += part))
          .on('end', () => resolve([response.statusCode, response.headers['content-type'], body]))
          .on('error', reject)
      })
    const got = await new Promise((resolve, reject) =>
      get(`${upstream}/text`, (response) => resolve(read(response))).on('error', reject),
    )
    const posted = await new Promise((resolve, reject) => {
      const outgoing = request(
        `${upstream}/echo`,
        { method: 'PUT', headers: { 'X-Test': 'a', 'Content-Type': 'text/plain' } },
        (response) => resolve(read(response)),
      )
      outgoing.on('error', reject)
      outgoing.write('part 1, ')
      Readable.from(['part 2']).pipe(outgoing)
    })
    const { method, body, headers } = JSON.parse(posted[2])
    const aborted = await new Promise((resolve) => {
      const call = get(`${upstream}/text`)
      call.on('error', (error) => resolve(error.code))
      call.destroy()
    })
    return [got, posted[0], method, body, headers['x-test'], aborted]
  },
  'openai': async () => {
    const { default: OpenAI } = await import('openai')
    const client = new OpenAI({ apiKey: 'k', baseURL: `${upstream}/openai`, maxRetries: 0 })
    const answer = await client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    const parts = []
    for await (const part of await client.chat.completions.create({ model: 'm', messages: [], stream: true }))
      parts.push(part.choices[0].delta.content)
    return [answer.choices[0].message.content, parts]
  },
  '@anthropic-ai/sdk': async () => {
    const { default: Anthropic } = await import('@anthropic-ai/sdk')
    const client = new Anthropic({ apiKey: 'k', baseURL: `${upstream}/anthropic`, maxRetries: 0 })
    return (await client.messages.create({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] })).content
  },
  '@aws-sdk/client-s3': async () => {
    const { GetObjectCommand, ListBucketsCommand, S3Client } = await import('@aws-sdk/client-s3')
    const client = new S3Client({
      region: 'eu-central-1',
      endpoint: `${upstream}/s3`,
      forcePathStyle: true,
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    })
    const { Body, ContentType } = await client.send(new GetObjectCommand({ Bucket: 'b', Key: 'k.txt' }))
    return [
      await Body.transformToString(),
      ContentType,
      (await client.send(new ListBucketsCommand({}))).Buckets.map(({ Name }) => Name),
    ]
  },
  'stripe': async () => {
    const { default: Stripe } = await import('stripe')
    const { hostname, port } = new URL(upstream)
    const stripe = new Stripe('sk_test_x', { host: hostname, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false })
    const header = stripe.webhooks.generateTestHeaderString({ payload: '{"id":"evt_1"}', secret: 'whsec_x' })
    return [
      (await stripe.customers.create({ email: 'a@b.c' })).email,
      stripe.webhooks.constructEvent('{"id":"evt_1"}', header, 'whsec_x').id,
    ]
  },
  'twilio': async () => {
    const { default: twilio } = await import('twilio')
    const response = new twilio.twiml.VoiceResponse()
    response.say('Hello')
    return response.toString()
  },
  'form-data': async () => {
    const { default: FormData } = await import('form-data')
    const form = new FormData()
    form.setBoundary('xyz')
    form.append('field', 'value')
    form.append('file', Buffer.from('bytes'), { filename: 'a.txt', contentType: 'text/plain' })
    return [form.getHeaders(), form.getBuffer().toString()]
  },
  'busboy': async () => {
    const { default: busboy } = await import('busboy')
    const body =
      '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nv\r\n--x\r\nContent-Disposition: form-data; name="f"; filename="t.txt"\r\nContent-Type: text/plain\r\n\r\nfile text\r\n--x--\r\n'
    const parser = busboy({ headers: { 'content-type': 'multipart/form-data; boundary=x' } })
    const seen = []
    parser.on('field', (name, value) => seen.push(name, value))
    parser.on('file', (name, file, info) => file.on('data', (data) => seen.push(name, info, String(data))))
    await new Promise((resolve, reject) => {
      parser.on('close', resolve).on('error', reject)
      Readable.from([body.slice(0, 60), body.slice(60)]).pipe(parser)
    })
    return seen
  },
  'jsonwebtoken': async () => {
    const { default: jwt } = await import('jsonwebtoken')
    const token = jwt.sign({ foo: 'bar', iat: 1 }, 'shhhhh')
    try {
      jwt.verify(token, 'wrong')
    } catch (error) {
      return [token, jwt.verify(token, 'shhhhh'), error.message]
    }
  },
  'jose': async () => {
    const { jwtVerify, SignJWT } = await import('jose')
    const secret = new TextEncoder().encode('cc7e0d44fd473002f1c42167459001140ec6389b7353f8088f4d9a95f2f596f2')
    const jwt = await new SignJWT({ 'urn:example:claim': true }).setProtectedHeader({ alg: 'HS256' }).setIssuedAt(1).sign(secret)
    return [jwt, (await jwtVerify(jwt, secret)).payload]
  },
  'bcryptjs': async () => {
    const { default: bcrypt } = await import('bcryptjs')
    return [
      bcrypt.compareSync('B4c0/\\/', bcrypt.hashSync('B4c0/\\/', 4)),
      await bcrypt.compare('not', '$2b$04$abcdefghijklmnopqrstuuG6bQnPbKZ0tHpXOIqKb0mzLCGkwKzuS'),
    ]
  },
  'accepts and type-is': async () => {
    const { default: accepts } = await import('accepts')
    const typeis = await import('type-is')
    const request = {
      headers: {
        'accept': 'text/html;q=0.5, application/json',
        'accept-encoding': 'gzip',
        'content-type': 'application/json; charset=utf-8',
        'transfer-encoding': 'chunked',
      },
    }
    return [accepts(request).types(['html', 'json']), accepts(request).encodings('gzip', 'br'), typeis.hasBody(request)]
  },
  'http-errors': async () => {
    const { default: createError } = await import('http-errors')
    return [
      createError(404).message,
      createError(401, 'Please login').status,
      new createError.NotFound().expose,
      createError.isHttpError(createError(500)),
    ]
  },
  'raw-body': async () => {
    const { default: getRawBody } = await import('raw-body')
    return [
      await getRawBody(Readable.from([Buffer.from('ab'), Buffer.from('c')], { objectMode: false }), { encoding: true }),
      await getRawBody(Readable.from([Buffer.from('abcd')], { objectMode: false }), { limit: 2 }).catch((error) => [
        error.type,
        error.status,
      ]),
    ]
  },
  'hono': async () => {
    const { Hono } = await import('hono')
    const { cors } = await import('hono/cors')
    const { sign, verify } = await import('hono/jwt')
    const app = new Hono()
      .use(cors())
      .get('/a/:id', (c) => c.json({ id: c.req.param('id'), q: c.req.query('q') }))
      .post('/form', async (c) => c.text((await c.req.parseBody()).x))
    const token = await sign({ sub: 'u' }, 'secret', 'HS256')
    return [
      await (await app.request('/a/5?q=1')).json(),
      await (await app.request('/form', { method: 'POST', body: new URLSearchParams({ x: 'y' }) })).text(),
      (await app.request('/none')).status,
      token,
      await verify(token, 'secret', 'HS256'),
    ]
  },
  'itty-router': async () => {
    const { AutoRouter, error } = await import('itty-router')
    const router = AutoRouter()
      .get('/todos/:id', ({ params }) => ({ id: params.id }))
      .get('/bad', () => error(400, 'no'))
    const ask = async (path) => {
      const response = await router.fetch(new Request(`http://x${path}`))
      return [response.status, await response.json()]
    }
    return [await ask('/todos/3'), await ask('/bad'), await ask('/none')]
  },
  'h3': async () => {
    const h3 = await import('h3')
    const app = new h3.H3()
      .get('/hi/:name', (event) => ({ hi: h3.getRouterParam(event, 'name') }))
      .post('/body', (event) => h3.readBody(event))
    return [
      await (await app.request('/hi/a')).json(),
      await (
        await app.request('/body', { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } })
      ).json(),
      (await app.request('/no')).status,
    ]
  },
  'graphql-yoga': async () => {
    const { createSchema, createYoga } = await import('graphql-yoga')
    const yoga = createYoga({
      schema: createSchema({
        typeDefs: 'type Query { hello: String }',
        resolvers: { Query: { hello: () => 'Hello from Yoga!' } },
      }),
      logging: false,
    })
    const response = await yoga.fetch('http://x/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ hello }' }),
    })
    return [response.status, await response.json()]
  },
  '@trpc/server': async () => {
    const { initTRPC } = await import('@trpc/server')
    const { fetchRequestHandler } = await import('@trpc/server/adapters/fetch')
    const t = initTRPC.create()
    const router = t.router({ greet: t.procedure.input((value) => String(value)).query(({ input }) => `hi ${input}`) })
    const response = await fetchRequestHandler({
      endpoint: '/trpc',
      req: new Request('http://x/trpc/greet?input=%22a%22'),
      router,
      createContext: () => ({}),
    })
    return [response.status, await response.json(), await t.createCallerFactory(router)({}).greet('b')]
  },
  'express': async () => {
    const { default: express } = await import('express')
    const { default: serverless } = await import('serverless-http')
    const app = express()
    app
      .use(express.json())
      .get('/u/:id', (req, res) => res.json({ id: req.params.id, q: req.query }))
      .post('/p', (req, res) => res.status(201).send(req.body))
    const handler = serverless(app)
    const ask = async (httpMethod, path, body) => {
      const { statusCode, body: text } = await handler(
        {
          httpMethod,
          path,
          body,
          headers: { 'content-type': 'application/json', 'content-length': String(body?.length ?? 0) },
          queryStringParameters: { a: '1' },
          requestContext: {},
        },
        {},
      )
      return [statusCode, text]
    }
    return [await ask('GET', '/u/7'), await ask('POST', '/p', '{"x":1}'), (await ask('GET', '/no'))[0]]
  },
  'koa': async () => {
    const { default: Koa } = await import('koa')
    const { default: serverless } = await import('serverless-http')
    const app = new Koa()
    app
      .use(async (ctx, next) => {
        await next()
        ctx.set('X-After', 'yes')
      })
      .use((ctx) => {
        ctx.body = { path: ctx.path, q: ctx.query }
      })
    const { statusCode, body, headers } = await serverless(app)(
      { httpMethod: 'GET', path: '/a', headers: {}, queryStringParameters: { b: 'c' }, requestContext: {} },
      {},
    )
    return [statusCode, body, headers['x-after'], headers['content-type']]
  },
  '@fastify/aws-lambda': async () => {
    const { default: fastify } = await import('fastify')
    const { default: awsLambdaFastify } = await import('@fastify/aws-lambda')
    const app = fastify()
    app.get('/', async () => ({ hello: 'world' }))
    const { statusCode, body, headers } = await awsLambdaFastify(app)({
      httpMethod: 'GET',
      path: '/',
      headers: {},
      queryStringParameters: {},
    })
    return [statusCode, body, headers['content-type']]
  },
  'undici': async () => {
    const { request } = await import('undici')
    return request(`${upstream}/text`).then(async ({ statusCode, body }) => [statusCode, await body.text()])
  },
})
