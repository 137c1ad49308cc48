import { Hono } from 'hono'

interface Note {
  readonly text: string
}

/** Kept as long as the isolate is. */
const notes = new Map<string, Note>()

const app = new Hono()

app.use(async (context, next) => {
  await next()
  context.header('x-powered-by', 'Hono')
})

app.get('/', (context) => context.text('Hello from Hono'))

app.get('/notes', (context) => context.json(Object.fromEntries(notes)))

app.get('/notes/:id', (context) => {
  const note = notes.get(context.req.param('id'))
  return note === undefined ? context.notFound() : context.json(note)
})

app.put('/notes/:id', async (context) => {
  const { text } = await context.req.json<Note>()
  if (typeof text !== 'string') return context.json({ error: 'text must be a string' }, 400)
  notes.set(context.req.param('id'), { text })
  return context.json({ text })
})

export default app
