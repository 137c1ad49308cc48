import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer } from '../support/server.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { startInNode } from './app-in-node.ts'

interface Asked {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData | ReadableStream | Uint8Array<ArrayBuffer>
}

function uploads(): FormData {
  const form = new FormData()
  form.append('title', 'käse')
  form.append('files', new File(['first file'], 'a.txt', { type: 'text/plain' }))
  form.append('files', new File([new Uint8Array(70_000).fill(7)], 'b.bin', { type: 'application/octet-stream' }))
  return form
}

const JSON_TYPE = { 'content-type': 'application/json' }
const ASKED = (): Asked[] => [
  { path: '/' },
  { path: '/json' },
  { path: '/users/7?a=1&b[]=2&b[]=3&c=%C3%A9' },
  { path: '/users/a%2Fb' },
  { path: '/files/a/b/c.txt' },
  { path: '/status/404' },
  { path: '/status/503' },
  { path: '/redirect' },
  { path: '/cookies', headers: { cookie: 'c=d; e=f%20g' } },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: '{"x":1}' },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: '{"x":' },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ x: 'y'.repeat(20_000) }) },
  { path: '/form', method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=1&b=x+y' },
  { path: '/upload', method: 'POST', body: uploads() },
  {
    path: '/raw',
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body: new Uint8Array([0, 1, 254, 255]),
  },
  { path: '/text', method: 'PATCH', headers: { 'content-type': 'text/plain' }, body: 'abc é' },
  { path: '/json', method: 'POST', headers: JSON_TYPE, body: ReadableStream.from([Buffer.from('{"x":'), Buffer.from('2}')]) },
  { path: '/gone/1', method: 'DELETE' },
  { path: '/stream' },
  { path: '/slow' },
  { path: '/throws' },
  { path: '/rejects' },
  { path: '/accepts', headers: { accept: 'application/json' } },
  { path: '/headers' },
  { path: '/serialized' },
  { path: '/attachment' },
  { path: '/empty' },
  { path: '/admin/x' },
  { path: '/admin/x', headers: { authorization: 'Bearer t' } },
  { path: '/admin/team/y', method: 'POST', headers: { authorization: 'Bearer t' } },
  { path: '/json', method: 'HEAD' },
  { path: '/json', method: 'OPTIONS' },
  { path: '/no/such/route' },
]

/** Headers that are the connection's, the clock's or our server's. */
const NOT_COMPARED =
  /^(?:connection|keep-alive|transfer-encoding|date|content-length|x-request-id|traceparent|server-timing|x-carpool-.*)$/

async function ask(base: string, { path, ...init }: Asked): Promise<object> {
  const response = await fetch(base + path, { redirect: 'manual', duplex: 'half', ...init })
  const headers = [...response.headers].filter(([name]) => !NOT_COMPARED.test(name))
  const body = Buffer.from(await response.arrayBuffer()).toString('latin1')
  return { status: response.status, headers: Object.fromEntries(headers), cookies: response.headers.getSetCookie(), body }
}

const HONO_IN_NODE = `
import { createServer } from 'node:http'
import app from './hono.mjs'
createServer(async (req, res) => {
  const hasBody = req.method !== 'GET' && req.method !== 'HEAD'
  const response = await app.fetch(new Request('http://' + req.headers.host + req.url, { method: req.method, headers: req.headers, ...(hasBody && { body: req, duplex: 'half' }) }))
  res.writeHead(response.status, [...response.headers].flat())
  res.end(Buffer.from(await response.arrayBuffer()))
}).listen(Number(process.env.PORT))
`

if (IS_WHOLE) {
  // They are installed first.
  t.setTimeout(600_000)
  t.test('apps of frameworks answer in a function as they do in Node.js', { timeout: 600_000 }, async (t) => {
    const folder = join(installPackages(), 'apps')
    mkdirSync(folder, { recursive: true })
    cpSync(join(import.meta.dirname, 'apps'), folder, { recursive: true })
    writeFileSync(join(folder, 'hono-in-node.mjs'), HONO_IN_NODE)
    const server = await startServer(t, ['--max-bundle-bytes', '33554432'])
    for (const name of ['express', 'koa', 'fastify', 'hono']) {
      await t.test(name, async (t) => {
        await server.json('deploy', join(folder, `${name}.mjs`), '--name', name)
        const inNode = await startInNode(t, join(folder, name === 'hono' ? 'hono-in-node.mjs' : `${name}.mjs`))
        const [first, second] = [ASKED(), ASKED()]
        for (const [at, asked] of first.entries()) {
          const [expected, found] = [await ask(inNode, asked), await ask(`${server.url}/${name}`, second[at]!)]
          t.same(found, expected, `${asked.method ?? 'GET'} ${asked.path}`)
        }
      })
    }
  })
} else {
  t.pass('npm run test:packages tries them')
}
