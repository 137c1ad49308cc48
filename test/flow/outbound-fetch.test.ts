/** Functions fetch through the server, which decides where to. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startServer } from '../support/server.ts'

const PROXY = `
  export default {
    async fetch(request) {
      const target = new URL(request.url).searchParams.get('to')
      try {
        const response = await fetch(target, { method: 'POST', body: 'ping', headers: { 'x-from': 'function' } })
        return Response.json({ status: response.status, body: await response.text() })
      } catch (error) {
        return Response.json({ error: error.name, message: error.message })
      }
    }
  }`

async function upstream(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => response.writeHead(201).end(`${request.method} ${String(request.headers['x-from'])} ${body} pong`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

t.test('a function fetches what the operator allows', async (t) => {
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])
  await server.deploy('proxy', PROXY)
  const to = encodeURIComponent(await upstream(t))
  const answers = await Promise.all(Array.from({ length: 50 }, async () => (await server.get(`/proxy/?to=${to}`)).json()))
  for (const answer of answers) t.strictSame(answer, { status: 201, body: 'POST function ping pong' })
})

t.test('without leave a function reaches no private address', async (t) => {
  const server = await startServer(t)
  await server.deploy('proxy', PROXY)
  const { port } = new URL(await upstream(t))
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '169.254.169.254']) {
    const to = encodeURIComponent(`http://${host}:${port}/`)
    t.match(await (await server.get(`/proxy/?to=${to}`)).json(), { error: 'TypeError' }, host)
  }
})
