// The same events as plain Node.js sends them.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const server = createServer((request, response) => void answer(request, response))

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://plain')
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (pathname === '/idle') return response.write(': open\n\n')
  const pauseMs = Number(searchParams.get('pause'))
  for (let left = Number(searchParams.get('events')); left > 0; left--) {
    await sleep(pauseMs)
    response.write(`data: ${Temporal.Now.instant().epochNanoseconds}\n\n`)
  }
  response.end()
}

server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => console.log(JSON.stringify({ port: server.address().port })))
