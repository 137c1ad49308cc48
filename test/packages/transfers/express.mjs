import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import express from 'express'
import { linesOf, seen } from './lines.mjs'

const app = express()

app.get('/download', (req, res) => {
  const lines = linesOf(Number(req.query.bytes))
  res.attachment('lines.txt')
  // As many do it; nobody ends the lines of who leaves.
  res.on('close', () => lines.destroy())
  lines.pipe(res)
})
app.get('/pipeline', async (req, res) => {
  await pipeline(linesOf(Number(req.query.bytes)), new Transform({ transform: (part, _, done) => done(null, part) }), res)
})
app.get('/written', async (req, res) => {
  res.setHeader('content-length', req.query.bytes)
  for await (const part of linesOf(Number(req.query.bytes))) {
    if (!res.write(part)) await new Promise((resolve) => res.once('drain', resolve))
  }
  res.end()
})
app.get('/breaks', async (req, res, next) => {
  const lines = linesOf(Number(req.query.bytes), 2 ** 20)
  await pipeline(lines, res)
})
app.post('/upload', async (req, res) => {
  const hash = createHash('sha256')
  await pipeline(req, hash)
  res.json({ hash: hash.digest('hex') })
})
app.post('/echo', (req, res) => {
  req.pipe(res)
})
/** A proxy as it is written in Node.js. */
app.all('/through', (req, res) => {
  const passed = request(req.query.to, { method: req.method }, (answer) => {
    res.status(answer.statusCode)
    answer.pipe(res)
  })
  passed.on('error', (error) => res.destroy(error))
  req.pipe(passed)
})
app.get('/seen', (req, res) => res.json(seen))
app.use((error, req, res, next) => {
  seen.errors.push(error.code ?? error.message)
  if (!res.headersSent) res.status(500).json({ caught: error.message })
})

app.listen(Number(process.env.PORT ?? 3000))
