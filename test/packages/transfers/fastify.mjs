import { createHash } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import { PassThrough, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import Fastify from 'fastify'
import { linesOf, seen } from './lines.mjs'

const app = Fastify({ bodyLimit: 2 ** 30 })
// Bodies are streams.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', (request, payload, done) => done(null, payload))

app.get('/download', async (request, reply) => {
  reply.header('content-disposition', 'attachment; filename="lines.txt"').type('application/octet-stream')
  return reply.send(linesOf(Number(request.query.bytes)))
})
app.get('/pipeline', async (request, reply) => {
  return reply.send(linesOf(Number(request.query.bytes)).pipe(new Transform({ transform: (part, _, done) => done(null, part) })))
})
app.get('/written', async (request, reply) => {
  reply.hijack()
  reply.raw.writeHead(200, { 'content-length': request.query.bytes })
  await pipeline(linesOf(Number(request.query.bytes)), reply.raw)
})
app.get('/web', async (request, reply) => {
  const { Readable } = await import('node:stream')
  return reply.send(Readable.toWeb(linesOf(Number(request.query.bytes))))
})
app.get('/breaks', async (request, reply) => {
  const lines = linesOf(Number(request.query.bytes), 2 ** 20)
  return reply.send(lines)
})
app.post('/upload', async (request) => {
  const hash = createHash('sha256')
  await pipeline(request.body, hash)
  return { hash: hash.digest('hex') }
})
app.post('/echo', async (request, reply) => reply.send(request.body.pipe(new PassThrough())))
app.all('/through', (request, reply) => {
  const passed = httpRequest(request.query.to, { method: request.method }, (answer) => {
    void reply.code(answer.statusCode).send(answer)
  })
  passed.on('error', (error) => void reply.send(error))
  request.raw.pipe(passed)
})
app.get('/seen', async () => seen)
app.addHook('onError', async (request, reply, error) => void seen.errors.push(error.code ?? error.message))

await app.listen({ port: Number(process.env.PORT ?? 3000) })
