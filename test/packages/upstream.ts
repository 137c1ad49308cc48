import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

const COMPLETION = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request)
  const { method, url = '/', headers } = request
  const json = (value: unknown, status = 200): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }
  if (url.startsWith('/echo')) return json({ method, url, headers, body })
  if (url === '/text') return void response.setHeader('content-type', 'text/plain').end('some text')
  if (url === '/redirect') return void response.writeHead(302, { location: '/text' }).end()
  if (url.startsWith('/status/')) return json({ error: 'as asked' }, Number(url.slice('/status/'.length)))
  if (url.startsWith('/openai')) {
    if (!body.includes('"stream":true')) {
      return json({
        ...COMPLETION,
        choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
      })
    }
    response.setHeader('content-type', 'text/event-stream')
    for (const content of ['a', 'b'])
      response.write(`data: ${JSON.stringify({ ...COMPLETION, choices: [{ index: 0, delta: { content } }] })}\n\n`)
    return void response.end('data: [DONE]\n\n')
  }
  if (url.startsWith('/anthropic'))
    return json({ id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'hello' }], usage: {} })
  if (url.startsWith('/s3/b/k.txt')) return void response.setHeader('content-type', 'text/plain').end('object')
  if (url.startsWith('/s3')) {
    const names = '<Bucket><Name>one</Name></Bucket><Bucket><Name>two</Name></Bucket>'
    return void response
      .setHeader('content-type', 'application/xml')
      .end(`<ListAllMyBucketsResult><Buckets>${names}</Buckets></ListAllMyBucketsResult>`)
  }
  if (url === '/v1/customers') return json({ id: 'cus_1', object: 'customer', email: new URLSearchParams(body).get('email') })
  json({ error: 'no such thing' }, 404)
}

/** A server for clients: it says what it was asked, and answers as the services whose clients are tried. */
export async function startUpstream(t: Test): Promise<string> {
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
