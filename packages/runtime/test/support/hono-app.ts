import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { HTTPException } from 'hono/http-exception'

/** A small app with the usual parts of Hono; it runs in Node.js as well as in a guest. */
export const app = new Hono<{ Bindings: { KEY: string } }>()

app.use('/api/*', cors())
app.get('/', (c) => c.text('root'))
app.get('/api/:id', (c) => c.json({ id: c.req.param('id'), q: c.req.query('q'), env: c.env.KEY }))
app.post('/json', async (c) => c.json(await c.req.json(), 201))
app.post('/form', async (c) => c.json(await c.req.parseBody()))
app.get('/html', (c) => {
  c.header('x-a', 'b')
  return c.html('<p>')
})
app.get('/go', (c) => c.redirect('/'))
app.get('/teapot', () => {
  throw new HTTPException(418, { message: 'teapot' })
})
app.get('/later', (c) => {
  c.executionCtx.waitUntil(Promise.resolve())
  return c.body(null, 204)
})
