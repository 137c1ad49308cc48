/** What the neighbour's function does, as a process that Carpool has nothing to do with; `neighbour.ts` starts it. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const [upstreamUrl] = process.argv.slice(2)
let kept = 0

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { searchParams } = new URL(request.url ?? '/', 'http://localhost')
  let work = 0
  for (let turn = Number(searchParams.get('loops')); turn > 0; turn--) work = (work * 31 + turn) | 0
  kept = work
  const pong = await fetch(`${upstreamUrl}?${searchParams.get('number')}`)
  response.setHeader('x-work', String(kept))
  response.end(`mine ${await pong.text()}`)
}

const server = createServer((request, response) => void answer(request, response))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
process.once('disconnect', () => process.exit())
