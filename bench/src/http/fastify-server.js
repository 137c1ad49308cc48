/** Fastify in one process: no isolation, no metering, no second process. Plain JavaScript, as in any production. */
import { setTimeout as delay } from 'node:timers/promises'
import Fastify from 'fastify'

const app = Fastify()
app.get('/hello/', (_request, reply) => reply.type('text/plain;charset=UTF-8').send('hello'))
app.post('/json/', (request, reply) => reply.send(request.body))
app.get('/timer/', async (_request, reply) => {
  await delay(1)
  return reply.type('text/plain;charset=UTF-8').send('hello')
})
console.log(JSON.stringify({ url: await app.listen({ host: '127.0.0.1', port: 0 }) }))
process.once('SIGTERM', () => process.exit(0))
