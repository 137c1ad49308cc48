/**
 * The smallest thing with Carpool's processes: a server with node:http, one socket to a host process, one isolate in it, and
 * nothing else. No limits, metering, ledger, routing or sandbox: it is what the architecture costs by itself, and what it could
 * reach.
 */
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'

const CONTENT_TYPES = { hello: 'text/plain;charset=UTF-8', json: 'application/json' }
const [workload] = process.argv.slice(2)
const contentType = CONTENT_TYPES[workload]
const host = spawn(process.execPath, ['--no-node-snapshot', fileURLToPath(new URL('split-host.js', import.meta.url)), workload], {
  stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
})
/** Lines of JSON in ASCII, both ways. */
const socket = host.stdio[3].setEncoding('latin1')
const waiting = new Map()
let lastNumber = 0
let outgoing = ''
let unread = ''

const server = createServer((request, response) => {
  const number = ++lastNumber
  waiting.set(number, response)
  const { method, url, rawHeaders: headers } = request
  if (method === 'GET') return send({ number, method, url, headers })
  let body = ''
  request
    .setEncoding('latin1')
    .on('data', (text) => (body += text))
    .on('end', () => send({ number, method, url, headers, body }))
})

/** What comes in one turn of the event loop leaves in one write. */
function send(request) {
  if (outgoing === '') setImmediate(flush)
  else outgoing += ','
  outgoing += JSON.stringify(request)
}

function flush() {
  socket.write(`${outgoing}\n`, 'latin1')
  outgoing = ''
}

socket.on('data', (text) => {
  unread += text
  const end = unread.lastIndexOf('\n')
  if (end < 0) return
  const lines = unread.slice(0, end).split('\n')
  unread = unread.slice(end + 1)
  for (const line of lines) {
    for (const [number, body] of JSON.parse(line)) {
      const response = waiting.get(number)
      waiting.delete(number)
      response.setHeader('content-type', contentType)
      response.end(body)
    }
  }
})

host.once('exit', () => process.exit(1))
process.once('SIGTERM', () => process.exit(0))
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })))
