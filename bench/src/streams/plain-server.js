// The same as plain Node.js does it. What only passes uses node:stream, which is the fastest that it has.
import { createServer, get } from 'node:http'
import { pipeline } from 'node:stream'
import { flipping, made } from './work.js'

/** The client is told by its connection that a body broke off. */
const ended = () => {}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://plain')
  switch (pathname) {
    case '/upload': {
      let bytes = 0
      request.on('data', (part) => (bytes += part.length)).on('end', () => response.end(String(bytes)))
      return
    }
    case '/download':
      return pipeline(made(Number(searchParams.get('bytes'))), response, ended)
    case '/pass':
      return pipeline(request, response, ended)
    case '/fetch':
      return get(searchParams.get('from'), (fetched) => pipeline(fetched, response, ended))
    case '/transform':
      return pipeline(request, flipping(), response, ended)
  }
  response.writeHead(404).end('There is no such workload.')
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })))
