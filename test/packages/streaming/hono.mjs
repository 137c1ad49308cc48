import { Hono } from 'hono'
import { streamSSE, streamText } from 'hono/streaming'

const app = new Hono()
let send
const seen = { aborted: 0, signaled: 0, failed: [] }
/** What the test has it send next; undefined if that is all. */
const next = () => new Promise((resolve) => (send = resolve))

app.get('/events', (c) =>
  streamSSE(
    c,
    async (stream) => {
      stream.onAbort(() => seen.aborted++)
      c.req.raw.signal.addEventListener('abort', () => seen.signaled++)
      let id = 0
      for (let data = await next(); data !== ''; data = await next()) {
        if (data === 'throw') throw new Error('thrown on purpose')
        await stream.writeSSE({ event: 'tick', id: String(id++), data })
        if (stream.aborted) return
      }
    },
    async (error) => void seen.failed.push(error.message),
  ),
)
app.get('/text', (c) =>
  streamText(c, async (stream) => {
    for (let text = await next(); text !== ''; text = await next()) await stream.write(text)
  }),
)
app.post('/send', async (c) => {
  while (send === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
  const give = send
  send = undefined
  give(await c.req.text())
  return c.body(null, 204)
})
app.get('/seen', (c) => c.json(seen))

export default app
