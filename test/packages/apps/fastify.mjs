import cookie from '@fastify/cookie'
import multipart from '@fastify/multipart'
import Fastify from 'fastify'
import { Readable } from 'node:stream'

const app = Fastify({ logger: false })
await app.register(cookie, { secret: 'secret' })
await app.register(multipart)
app.addHook('onRequest', async (request, reply) => {
  reply.header('X-Before', request.method)
})
app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (request, body, done) => done(null, body))
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (request, body, done) =>
  done(null, Object.fromEntries(new URLSearchParams(body))),
)
app.get('/', async () => 'home')
app.get('/json', async () => ({ a: 1, nested: { b: [1, 2] }, date: new Date(0) }))
app.get('/users/:id', async (request) => ({
  params: request.params,
  query: request.query,
  url: request.url,
  route: request.routeOptions.url,
}))
app.get('/files/*', async (request) => request.params)
app.get('/status/:code', async (request, reply) => reply.code(Number(request.params.code)).send({ code: request.params.code }))
app.get('/redirect', async (request, reply) => reply.redirect('/json', 301))
app.get('/cookies', async (request, reply) =>
  reply
    .setCookie('a', 'b c', { httpOnly: true, path: '/x', maxAge: 1, sameSite: 'lax' })
    .clearCookie('old')
    .send({ cookies: request.cookies }),
)
app.post(
  '/json',
  { schema: { body: { type: 'object', required: ['x'], properties: { x: { type: 'integer' } } } } },
  async (request, reply) => reply.code(201).send({ body: request.body }),
)
app.post('/form', async (request) => request.body)
app.post('/upload', async (request) => {
  const seen = []
  for await (const part of request.parts())
    seen.push(
      part.type === 'file'
        ? [part.fieldname, part.filename, part.mimetype, (await part.toBuffer()).length]
        : [part.fieldname, part.value],
    )
  return seen
})
app.put('/raw', async (request, reply) => reply.type('application/octet-stream').send(request.body))
app.patch('/text', async (request, reply) => reply.type('text/plain').send(request.body.toUpperCase()))
app.delete('/gone/:id', async (request, reply) => reply.code(204).send())
app.get('/stream', async (request, reply) => reply.type('text/plain').send(Readable.from(['one ', 'two ', 'three'])))
app.get('/slow', async () => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  return 'late'
})
app.get('/throws', () => {
  throw Object.assign(new Error('thrown'), { statusCode: 418 })
})
app.get('/rejects', async () => {
  await null
  throw new Error('rejected')
})
app.get('/headers', async (request, reply) =>
  reply
    .headers({ 'x-one': '1', 'x-many': 'a, b' })
    .send({ host: request.hostname, protocol: request.protocol, method: request.method }),
)
app.get(
  '/serialized',
  { schema: { response: { 200: { type: 'object', properties: { shown: { type: 'string' } } } } } },
  async () => ({ shown: 1, hidden: 2 }),
)
app.get('/attachment', async (request, reply) =>
  reply.header('content-disposition', 'attachment; filename="a.bin"').send(Buffer.from([1, 2, 255])),
)
await app.register(
  async (admin) => {
    admin.addHook('preHandler', async (request, reply) => {
      if (request.headers.authorization !== 'Bearer t') return reply.code(401).send({ error: 'no token' })
    })
    admin.get('/:what', async (request) => ({ what: request.params.what }))
  },
  { prefix: '/admin' },
)
app.setErrorHandler((error, request, reply) =>
  reply.code(error.statusCode ?? 500).send({ caught: error.message, code: error.code }),
)

await app.listen({ port: Number(process.env.PORT ?? 3000) })
