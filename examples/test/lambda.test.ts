import t from 'tap'
import { serveExamples } from './support/serve-examples.ts'

t.test('lambda gets an API Gateway event and a context', async (t) => {
  const url = await serveExamples(t, ['lambda'])
  const response = await fetch(`${url}/lambda/greet?name=Ada`)
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'application/json')
  t.match(response.headers.get('x-aws-request-id'), /./)
  t.strictSame(await response.json(), { greeting: 'Hello Ada', request: 'GET /greet', function: 'lambda' })

  const posted = await fetch(`${url}/lambda/`, { method: 'POST', body: 'x' })
  t.strictSame(await posted.json(), { greeting: 'Hello World', request: 'POST /', function: 'lambda' })
})
