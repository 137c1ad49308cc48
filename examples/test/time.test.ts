import t from 'tap'
import { serveExamples } from './support/serve-examples.ts'

t.test('time answers with the time', async (t) => {
  const url = await serveExamples(t, ['time'])
  const before = Date.now()
  const response = await fetch(`${url}/time/`)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const { now } = (await response.json()) as { now: string }
  t.equal(new Date(now).toISOString(), now)
  t.ok(Date.parse(now) >= before && Date.parse(now) <= Date.now(), 'it is the time of the call')
})
