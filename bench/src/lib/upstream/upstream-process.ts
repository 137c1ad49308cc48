/** The process behind `startUpstream`: answers after a delay that can be changed while it runs. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let delayMs = 0
process.on('message', (given: number) => {
  delayMs = given
})
process.once('disconnect', () => process.exit(0))
const server = createServer((_request, response) => void setTimeout(() => response.end('upstream'), delayMs))
server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 })
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
