import { join } from 'node:path'
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer } from '../support/server.ts'

// Many bundles, on a machine that may have much else to do.
t.setTimeout(300_000)

const LISTENER = `(request, response) => {
  let body = ''
  request.setEncoding('utf8').on('data', (part) => (body += part)).on('end', () => {
    response.statusCode = 201
    response.setHeader('Set-Cookie', ['a=1', 'b=2'])
    response.end(JSON.stringify({ method: request.method, url: request.url, body }))
  })
}`
const EXPRESS = `import express from 'express'
const app = express()
app.use(express.text())
app.post('/in/:id', (request, response) => response.status(201).cookie('a', '1', { path: undefined }).send({ id: request.params.id, body: request.body }))`
const FASTIFY = `import fastify from 'fastify'
const app = fastify()
app.post('/in/:id', async (request, reply) => reply.code(201).send({ id: request.params.id, body: request.body }))`

const FILES = {
  'listens.mjs': `import { createServer } from 'node:http'\ncreateServer(${LISTENER}).listen(3000)`,
  'common.cjs': `module.exports = require('http').createServer(${LISTENER})`,
  'express.mjs': `${EXPRESS}\nexport default app`,
}
/** The other way round, and what takes a while to bundle. */
const MORE_FILES = {
  'exported.mjs': `import http from 'node:http'\nexport default http.createServer(${LISTENER})`,
  'https.cjs': `require('https').createServer({}, ${LISTENER}).listen(443)`,
  'fastify-listens.mjs': `${FASTIFY}\nawait app.listen({ port: 3000 })`,
  'express-listens.mjs': `${EXPRESS}\napp.listen(process.env.PORT ?? 3000, () => {})`,
  'fastify.mjs': `${FASTIFY}\nexport default app`,
  'fastify-later.cjs': `const app = require('fastify')()
    app.post('/in/:id', async (request, reply) => reply.code(201).send({ id: request.params.id, body: request.body }))
    app.listen({ port: 3000 }, () => {})`,
}

const server = await startServer(t)

t.test('servers of node:http answer calls, however a module gives them', async (t) => {
  const files = IS_WHOLE ? { ...FILES, ...MORE_FILES } : FILES
  const folder = t.testdir(files)
  for (const file of Object.keys(files)) {
    const name = file.replace(/\..*/, '')
    await server.json('deploy', join(folder, file), '--name', name)
    const response = await server.get(`/${name}/in/5?q=1`, {
      method: 'POST',
      body: 'bödy',
      headers: { 'content-type': 'text/plain' },
    })
    const expected = /express|fastify/.test(name) ? { id: '5', body: 'bödy' } : { method: 'POST', url: '/in/5?q=1', body: 'bödy' }
    t.same([response.status, await response.json()], [201, expected], name)
    if (!/express|fastify/.test(name)) t.same(response.headers.getSetCookie(), ['a=1', 'b=2'])
  }
})

t.test('a body in chunks reaches parsers that look for a length', async (t) => {
  const response = await server.get('/express/in/5', {
    method: 'POST',
    body: ReadableStream.from([Buffer.from('in '), Buffer.from('chunks')]),
    duplex: 'half',
    headers: { 'content-type': 'text/plain' },
  })
  t.same([response.status, await response.json()], [201, { id: '5', body: 'in chunks' }])
})

t.test('a handler that is exported is the function, whatever else listens', async (t) => {
  const folder = t.testdir({
    'lambda.mjs': `import { createServer } from 'node:http'
      createServer((request, response) => response.end('metrics')).listen(9090)
      export const handler = async () => 'the handler'`,
    'named.mjs': `import { createServer } from 'node:http'
      createServer((request, response) => response.end('the default')).listen(3000)
      export const mine = async () => 'mine'`,
  })
  await server.json('deploy', join(folder, 'lambda.mjs'), '--name', 'lambda')
  await server.json('deploy', folder, '--name', 'named', '--handler', 'named.mine')
  t.equal(await (await server.get('/lambda/')).json(), 'the handler')
  t.equal(await (await server.get('/named/')).json(), 'mine')
})

t.test('a server that fails, streams, or never answers', async (t) => {
  await server.deploy('app', {
    'index.mjs': `import { createServer } from 'node:http'
      createServer((request, response) => {
        if (request.url === '/throws') throw new Error('thrown by the app')
        if (request.url === '/destroys') return response.destroy()
        if (request.url === '/none') return response.writeHead(204).end()
        if (request.url === '/head') return response.setHeader('x-a', 'b').end('text')
        response.writeHead(200, 'Fine', { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' })
        response.write('first,')
        setTimeout(() => { response.write('second,'); setImmediate(() => response.end('last')) }, 5)
      }).listen(0)`,
  })
  const ask = async (path: string, method = 'GET'): Promise<unknown> => {
    const response = await server.get(`/app${path}`, { method })
    return [response.status, await response.text()]
  }
  t.same(await ask('/stream'), [200, 'first,second,last'])
  t.match(await ask('/throws'), [500, /./])
  t.match(await ask('/destroys'), [500, /./])
  t.same(await ask('/none'), [204, ''])
  t.same(await ask('/head', 'HEAD'), [200, ''])
})

t.test('the log of a server that throws has the lines of the author alone', async (t) => {
  await server.deploy('throwing', {
    'index.mjs': `import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { old } from './old.cjs'
createServer((request, response) => {
  if (request.url === '/file') readFileSync('/none')
  if (request.url === '/old') old()
  request.on('end', () => { throw new Error('thrown at the end') }).resume()
}).listen(0)`,
    'old.cjs': `exports.old = () => { throw new Error('thrown by the old') }`,
  })
  for (const [path, title, line] of [
    ['/file', /ENOENT: no such file or directory, open '\/none'/, 'index.mjs:5:32'],
    ['/old', /thrown by the old/, 'old.cjs:1:29'],
    ['/', /thrown at the end/, 'index.mjs:7:35'],
  ] as const) {
    const leaves = new AbortController()
    const answered = server.get(`/throwing${path}`, { method: 'POST', body: 'x', signal: leaves.signal }).catch(() => {})
    const { msg } = await server.untilLogged('throwing', title)
    // The last one would wait for an answer until its time is over.
    leaves.abort()
    await answered
    t.ok(msg.includes(line), msg)
    t.notMatch(msg, /@carpool|throwing\.js|carpool:runtime/)
  }
})
