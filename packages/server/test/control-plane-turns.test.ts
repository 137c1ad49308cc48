import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { StatusInfo } from '@carpool/core'
import t, { type Test } from 'tap'
import type { ControlPlaneOptions } from '../src/control-plane/control-plane-options.ts'
import { startControlPlane, TOKEN } from './support/control-plane.ts'

const REQUESTS = 40
/** More than one turn gives to all requests together. */
const WORK_MS = 2

/** A control plane whose status takes a while, and in which turn of the event loop each was asked for. */
async function startSlow(t: Test, deployer: Partial<ControlPlaneOptions['deployer']> = {}) {
  let turn = 0
  let next = setImmediate(function count() {
    turn++
    next = setImmediate(count)
  })
  t.teardown(() => clearImmediate(next))
  const turns: number[] = []
  const work = (): undefined => {
    turns.push(turn)
    const untilMs = performance.now() + WORK_MS
    while (performance.now() < untilMs);
  }
  const status = (): StatusInfo => {
    work()
    return started.state.status
  }
  const started = await startControlPlane(t, undefined, { status, deployer })
  const { hostname, port } = new URL(started.url)
  const request = (token: string, path: string, body = ''): string =>
    `${body === '' ? 'GET' : 'PUT'} ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname)
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  return { ...started, turns, work, request, open }
}

/** Resolves with all that has come once there are so many answers. */
async function answers(socket: Socket, count: number): Promise<string> {
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    if (text.split('HTTP/1.1 ').length > count && text.endsWith('}')) return text
  }
  return text
}

t.test('requests that come at once are begun in turns of the event loop of their own', async (t) => {
  const { turns, request, open } = await startSlow(t)
  const socket = await open()
  socket.write(request(TOKEN, '/v1/status').repeat(REQUESTS))
  const text = await answers(socket, REQUESTS)
  t.equal(text.match(/HTTP\/1\.1 200 /g)?.length, REQUESTS, 'each is answered')
  t.equal(new Set(turns).size, REQUESTS)
})

t.test('nobody waits for all requests of another token, nor the operator for those of his owner', async (t) => {
  const { turns, request, open, as } = await startSlow(t)
  const [many, one] = await Promise.all([open(), open()])
  many.write(request(as('default', 'read').token, '/v1/status').repeat(REQUESTS))
  one.write(request(TOKEN, '/v1/status'))
  await answers(one, 1)
  t.ok(turns.length < REQUESTS / 2, `the operator's was answered when ${turns.length} had been begun`)
})

t.test('the connection of requests that wait is not read, and is when they have begun', async (t) => {
  const { turns, request, open } = await startSlow(t)
  let read = 0
  const count = (): void => void read++
  subscribe('http.server.request.start', count)
  t.teardown(() => unsubscribe('http.server.request.start', count))
  const socket = await open()
  const all = 30 * REQUESTS
  socket.write(request(TOKEN, '/v1/status').repeat(all))
  const text = answers(socket, all)
  while (turns.length < REQUESTS) await new Promise((resolve) => setImmediate(resolve))
  t.ok(read < all - REQUESTS, `${read} of ${all} were read when ${turns.length} had begun`)
  t.equal((await text).match(/HTTP\/1\.1 200 /g)?.length, all)
})

t.test('so are requests whose bodies end at once', async (t) => {
  const { turns, work, request, open } = await startSlow(t, { setSecret: async () => work() })
  const sockets = await Promise.all(Array.from({ length: REQUESTS }, open))
  const [head = '', body = ''] = request(TOKEN, '/v1/functions/f/secrets/A', '{"value":"v"}').split(/(?<=\r\n\r\n)/)
  for (const socket of sockets) socket.write(head)
  // Comes behind the heads, and waits for its turn behind them.
  const last = await open()
  last.write(request(TOKEN, '/v1/status'))
  await answers(last, 1)
  turns.length = 0
  for (const socket of sockets) socket.write(body)
  await Promise.all(sockets.map((socket) => once(socket, 'data')))
  t.equal(turns.length, REQUESTS)
  t.equal(new Set(turns).size, REQUESTS)
})
