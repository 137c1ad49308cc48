import { Hono } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { cors } from 'hono/cors'
import { HTTPException } from 'hono/http-exception'
import { stream } from 'hono/streaming'

const app = new Hono()
app.use(cors({ origin: 'http://a.b' }))
app.use(async (c, next) => {
  await next()
  c.header('X-After', c.req.method)
})
app.get('/', (c) => c.text('home'))
app.get('/json', (c) => c.json({ a: 1, nested: { b: [1, 2] }, date: new Date(0) }))
app.get('/users/:id', (c) => c.json({ params: c.req.param(), query: c.req.query(), path: c.req.path }))
app.get('/files/*', (c) => c.text(c.req.path))
app.get('/status/:code', (c) => c.body('', Number(c.req.param('code'))))
app.get('/redirect', (c) => c.redirect('/json', 301))
app.get('/cookies', (c) => {
  setCookie(c, 'a', 'b', { httpOnly: true, path: '/x', maxAge: 1, sameSite: 'Lax' })
  return c.json({ cookies: getCookie(c) })
})
app.post('/json', async (c) => c.json({ body: await c.req.json(), type: c.req.header('content-type') }, 201))
app.post('/form', async (c) => c.json(await c.req.parseBody()))
app.post('/upload', async (c) => {
  const body = await c.req.parseBody({ all: true })
  return c.json(
    await Promise.all(
      [body.files].flat().map(async (file) => [file.name, file.type, file.size, (await file.text()).slice(0, 10)]),
    ),
  )
})
app.put('/raw', async (c) => c.body(await c.req.arrayBuffer(), 200, { 'content-type': 'application/octet-stream' }))
app.patch('/text', async (c) => c.text((await c.req.text()).toUpperCase()))
app.delete('/gone/:id', (c) => c.body(null, 204))
app.get('/stream', (c) =>
  stream(c, async (out) => {
    for (const part of ['one ', 'two ', 'three']) await out.write(part)
  }),
)
app.get('/slow', async (c) => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  return c.text('late')
})
app.get('/throws', () => {
  throw new HTTPException(418, { message: 'thrown' })
})
app.get('/rejects', async () => {
  await null
  throw new Error('rejected')
})
app.get('/headers', (c) => {
  c.header('X-One', '1')
  c.header('X-Many', 'a')
  c.header('X-Many', 'b', { append: true })
  return c.html('<p>x</p>')
})
app.get('/attachment', (c) => c.body(new Uint8Array([1, 2, 255]), 200, { 'content-disposition': 'attachment' }))
app.all('/admin/:what', (c) =>
  c.req.header('authorization') === 'Bearer t'
    ? c.json({ method: c.req.method, what: c.req.param('what') })
    : c.json({ error: 'no token' }, 401),
)
app.onError((error, c) => (error instanceof HTTPException ? error.getResponse() : c.json({ caught: error.message }, 500)))
app.notFound((c) => c.text('none', 404))

export default app
