/** Bodies in many small chunks: they arrive as they were sent, in a few pieces. */
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import { joinsSmallChunks } from '../src/hardening/small-chunks.ts'

t.test('small chunks are joined, and large ones are not', async (t) => {
  let small = 0
  const IncomingMessage = joinsSmallChunks((_, count) => (small += count))
  const pieces: Buffer[] = []
  const server = createServer({ IncomingMessage }, (request, response) => {
    request.on('data', (piece: Buffer) => pieces.push(piece)).on('end', () => response.end())
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const body: string[] = []
  for (let index = 0; index < 20_000; index++)
    body.push(String.fromCharCode(97 + (index % 26)).repeat(index % 5000 === 4999 ? 2000 : 1))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n')
  socket.write(
    body.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('') + `0\r\n${'a: b\r\n'.repeat(1000)}\r\n`,
  )
  await once(socket.resume(), 'close')
  t.equal(Buffer.concat(pieces).toString(), body.join(''))
  t.ok(pieces.length < 300, `${pieces.length} pieces`)
  t.ok(
    pieces.some(({ length }) => length === 2000),
    'a large one by itself',
  )
  t.ok(small > 21_000, `${small} small chunks and trailers were told of`)
})
