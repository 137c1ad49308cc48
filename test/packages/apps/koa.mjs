import Router from '@koa/router'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import busboy from 'busboy'
import { Readable } from 'node:stream'

const app = new Koa({ keys: ['secret'] })
const router = new Router()
app.silent = true
app.use(async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    ctx.status = error.status ?? 500
    ctx.body = { caught: error.message }
  }
  ctx.set('X-After', ctx.method)
})
app.use(bodyParser({ enableTypes: ['json', 'form', 'text'] }))
router.get('/', (ctx) => {
  ctx.body = 'home'
})
router.get('/json', (ctx) => {
  ctx.body = { a: 1, nested: { b: [1, 2] }, date: new Date(0) }
})
router.get('/users/:id', (ctx) => {
  ctx.body = { params: ctx.params, query: ctx.query, path: ctx.path, url: ctx.originalUrl }
})
router.get('/status/:code', (ctx) => {
  ctx.status = Number(ctx.params.code)
})
router.get('/redirect', (ctx) => {
  ctx.status = 301
  ctx.redirect('/json')
})
router.get('/cookies', (ctx) => {
  ctx.cookies.set('a', 'b', { httpOnly: true, path: '/x', sameSite: 'lax' })
  ctx.body = { seen: ctx.cookies.get('c') ?? null }
})
router.post('/json', (ctx) => {
  ctx.status = 201
  ctx.body = { body: ctx.request.body, type: ctx.get('content-type'), is: ctx.is('json') }
})
router.post('/form', (ctx) => {
  ctx.body = ctx.request.body
})
router.post('/upload', async (ctx) => {
  const seen = []
  await new Promise((resolve, reject) => {
    const parser = busboy({ headers: ctx.headers })
    parser.on('field', (name, value) => seen.push([name, value]))
    parser.on('file', (name, file, { filename, mimeType }) => {
      let size = 0
      file.on('data', (data) => (size += data.length)).on('end', () => seen.push([name, filename, mimeType, size]))
    })
    parser.on('close', resolve).on('error', reject)
    ctx.req.pipe(parser)
  })
  ctx.body = seen
})
router.put('/raw', async (ctx) => {
  const parts = []
  for await (const part of ctx.req) parts.push(part)
  ctx.type = 'application/octet-stream'
  ctx.body = Buffer.concat(parts)
})
router.patch('/text', (ctx) => {
  ctx.body = ctx.request.body.toUpperCase()
})
router.delete('/gone/:id', (ctx) => {
  ctx.status = 204
})
router.get('/stream', (ctx) => {
  ctx.type = 'text/plain'
  ctx.body = Readable.from(['one ', 'two ', 'three'])
})
router.get('/slow', async (ctx) => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  ctx.body = 'late'
})
router.get('/throws', (ctx) => ctx.throw(418, 'thrown'))
router.get('/rejects', async () => {
  await null
  throw new Error('rejected')
})
router.get('/accepts', (ctx) => {
  ctx.body = { best: ctx.accepts('html', 'json'), encoding: ctx.acceptsEncodings('gzip', 'identity') }
})
router.get('/headers', (ctx) => {
  ctx.set('X-One', '1')
  ctx.append('X-Many', ['a', 'b'])
  ctx.vary('Accept')
  ctx.body = { host: ctx.hostname, secure: ctx.secure, protocol: ctx.protocol }
})
router.get('/attachment', (ctx) => {
  ctx.attachment('a b.txt')
  ctx.body = Buffer.from([1, 2, 255])
})
router.get('/empty', (ctx) => {
  ctx.body = null
})
router.all('/admin/:what', (ctx) => {
  if (ctx.get('authorization') !== 'Bearer t') ctx.throw(401, 'no token')
  ctx.body = { method: ctx.method, what: ctx.params.what }
})
app.use(router.routes()).use(router.allowedMethods())

app.listen(Number(process.env.PORT ?? 3000))
