import cookieParser from 'cookie-parser'
import express from 'express'
import multer from 'multer'
import { Readable } from 'node:stream'

const app = express()
const upload = multer()
app.set('trust proxy', false)
app.use(cookieParser('secret'))
app.use(express.json({ limit: '10kb' }))
app.use(express.urlencoded({ extended: true }))
app.use((req, res, next) => {
  res.set('X-Before', req.method)
  next()
})
app.get('/', (req, res) => res.send('home'))
app.get('/json', (req, res) => res.json({ a: 1, nested: { b: [1, 2] }, date: new Date(0) }))
app.get('/users/:id', (req, res) => res.json({ params: req.params, query: req.query, path: req.path, url: req.originalUrl }))
app.get('/files/*path', (req, res) => res.json(req.params))
app.get('/status/:code', (req, res) => res.sendStatus(Number(req.params.code)))
app.get('/redirect', (req, res) => res.redirect(301, '/json'))
app.get('/cookies', (req, res) =>
  res
    .cookie('a', 'b c', { httpOnly: true, path: '/x', maxAge: 1000, sameSite: 'lax' })
    .cookie('s', 'signed', { signed: true })
    .clearCookie('old')
    .json({ cookies: req.cookies }),
)
app.post('/json', (req, res) => res.status(201).json({ body: req.body, type: req.get('content-type'), is: req.is('json') }))
app.post('/form', (req, res) => res.json(req.body))
app.post('/upload', upload.array('files', 3), (req, res) =>
  res.json({
    fields: req.body,
    files: req.files.map(({ originalname, mimetype, size, buffer }) => [
      originalname,
      mimetype,
      size,
      buffer.toString('hex').slice(0, 40),
    ]),
  }),
)
app.put('/raw', express.raw({ type: '*/*' }), (req, res) => res.type('application/octet-stream').send(req.body))
app.patch('/text', express.text(), (req, res) => res.type('txt').send(req.body.toUpperCase()))
app.delete('/gone/:id', (req, res) => res.status(204).end())
app.get('/stream', (req, res) => {
  res.type('text/plain')
  Readable.from(['one ', 'two ', 'three']).pipe(res)
})
app.get('/slow', (req, res) => {
  res.write('first,')
  setTimeout(() => res.end('last'), 5)
})
app.get('/throws', () => {
  throw Object.assign(new Error('thrown'), { status: 418 })
})
app.get('/rejects', async () => {
  await null
  throw new Error('rejected')
})
app.get('/accepts', (req, res) => res.format({ html: () => res.send('<p>html</p>'), json: () => res.send({ json: true }) }))
app.get('/headers', (req, res) =>
  res
    .set({ 'X-One': '1', 'X-Many': ['a', 'b'] })
    .vary('Accept')
    .links({ next: '/2' })
    .append('X-One', '2')
    .json({ host: req.hostname, secure: req.secure, protocol: req.protocol, fresh: req.fresh, xhr: req.xhr }),
)
app.get('/attachment', (req, res) => res.attachment('a b.txt').send(Buffer.from([1, 2, 255])))
const admin = express.Router({ mergeParams: true })
admin.use((req, res, next) => (req.get('authorization') === 'Bearer t' ? next() : res.status(401).json({ error: 'no token' })))
admin.all('/:what', (req, res) => res.json({ method: req.method, base: req.baseUrl, params: req.params }))
app.use('/admin/:team', admin)
app.use((error, req, res, next) => {
  if (res.headersSent) return next(error)
  res.status(error.status ?? 500).json({ caught: error.message, type: error.type })
})

app.listen(Number(process.env.PORT ?? 3000))
