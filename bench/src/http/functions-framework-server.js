/** Google's Functions Framework: Express and one function in one process. Plain JavaScript, as in any production. */
import { setTimeout as delay } from 'node:timers/promises'
import { http } from '@google-cloud/functions-framework'
// Its command listens where it is told to, and says nothing in production; this is the server that it makes.
import { getTestServer } from '@google-cloud/functions-framework/testing'

const [workload] = process.argv.slice(2)
http('hello', (_request, response) => response.type('text/plain').send('hello'))
http('json', (request, response) => response.json(request.body))
http('timer', async (_request, response) => {
  await delay(1)
  response.type('text/plain').send('hello')
})
const server = getTestServer(workload).listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }))
})
process.once('SIGTERM', () => process.exit(0))
