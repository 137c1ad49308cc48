/** Bodies in many small chunks: they arrive as they were sent, in a few pieces. */
import { createServer, type IncomingMessage as Message } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { JoinsSmallChunks } from '../src/hardening/small-chunks.ts'

t.test('small chunks are joined, and large ones are not', async (t) => {
  const pieces: Buffer[] = []
  const server = createServer({ IncomingMessage: JoinsSmallChunks }, (request, response) => {
    request.on('data', (piece: Buffer) => pieces.push(piece)).on('end', () => response.end())
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const body: string[] = []
  for (let index = 0; index < 20_000; index++)
    body.push(String.fromCharCode(97 + (index % 26)).repeat(index % 5000 === 4999 ? 2000 : 1))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n')
  socket.write(body.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('') + '0\r\n\r\n')
  await once(socket.resume(), 'close')
  t.equal(Buffer.concat(pieces).toString(), body.join(''))
  t.ok(pieces.length < 300, `${pieces.length} pieces`)
  t.ok(
    pieces.some(({ length }) => length === 2000),
    'a large one by itself',
  )
})

t.test('of a body that nobody reads, no more is read than of one in large chunks', async (t) => {
  const { promise, resolve } = Promise.withResolvers<Message>()
  const server = createServer({ IncomingMessage: JoinsSmallChunks }, (request) => resolve(request.pause())).listen(0)
  t.teardown(() => server.close())
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
  const request = await promise
  const some = `1f4\r\n${'x'.repeat(500)}\r\n`.repeat(20)
  for (let turn = 0; turn < 5000 && !request.socket.isPaused(); turn++) {
    socket.write(some)
    await nextTurn()
  }
  t.ok(request.socket.isPaused())
  t.ok(request.readableLength < 300_000, `${request.readableLength} bytes wait`)
  socket.destroy()
})
