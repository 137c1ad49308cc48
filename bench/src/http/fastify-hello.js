/** Fastify in one process: no isolation, no metering, no second process. Plain JavaScript, as in any production. */
import Fastify from 'fastify'

const app = Fastify()
app.get('/hello/', (_request, reply) => reply.type('text/plain;charset=UTF-8').send('hello'))
console.log(JSON.stringify({ url: await app.listen({ host: '127.0.0.1', port: 0 }) }))
process.once('SIGTERM', () => process.exit(0))
