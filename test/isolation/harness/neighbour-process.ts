/** Serves the neighbour's function on plain Node.js, without Carpool. `neighbour.ts` starts it, with the code and its `env`. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { runInThisContext } from 'node:vm'

interface Handler {
  fetch(request: Pick<Request, 'url'>, env: object): Promise<Response>
}

const [code = '', env = ''] = process.argv.slice(2)
const { default: handler } = (runInThisContext(code) as () => { default: Handler })()
const bindings = JSON.parse(env) as object

async function answer({ url }: IncomingMessage, response: ServerResponse): Promise<void> {
  const answered = await handler.fetch({ url: `http://localhost${url}` }, bindings)
  response.end(await answered.text())
}

const server = createServer((request, response) => void answer(request, response))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
process.once('disconnect', () => process.exit())
