/** Sockets and streamed fetches from a host's messages to real peers and back. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Holder } from '@carpool/core'
import { Egress } from '@carpool/egress'
import type { StreamFromHost, StreamToHost } from '@carpool/fleet'
import t, { type Test } from 'tap'
import { EgressRelay, type EgressRelayParts, type FetchingHost } from '../src/host-reports/egress-relay.ts'

const LIMITS = { memoryMb: 64, cpuMs: 1_000, wallMs: 20_000, streamMs: 0, idleMs: 0, concurrency: 10 }
const REVISIONS: ReturnType<EgressRelayParts['revisionOf']>[] = [
  { functionName: 'own', owner: 'default', limits: LIMITS },
  { functionName: 'listed', owner: 'default', limits: LIMITS, egress: ['127.0.0.2'] },
]
const NO_BODY = new Uint8Array(0)

/** Keeps what it is told. */
class Host implements FetchingHost {
  readonly id = 1
  readonly said: Array<StreamToHost & { readonly text: string; readonly body: string }> = []
  #wake: (() => void) | undefined

  settleFetch(_holder: Holder, fetch: number, text: string, body: Uint8Array): void {
    this.sayOfStream(_holder, { type: 'fetch-settled', fetch, bytesOut: 0, bytesIn: 0 }, text, body)
  }

  sayOfStream(_holder: Holder, message: StreamToHost, text = '', body: Uint8Array = NO_BODY): void {
    this.said.push({ ...message, text, body: Buffer.from(body).toString() })
    this.#wake?.()
  }

  get types(): string[] {
    return this.said.map(({ type }) => type)
  }

  async until(type: StreamToHost['type']): Promise<Host['said'][number]> {
    for (;;) {
      const found = this.said.find((each) => each.type === type)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

const egress = new Egress({ allow: ['127.0.0.0/8'] })
t.teardown(() => egress.close())

function relayOf(parts: Partial<EgressRelayParts> = {}): EgressRelay {
  return new EgressRelay({ egress, revisionOf: (id) => REVISIONS[Number(id)], ...parts })
}

async function portOf(t: Test, server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

const echo = (): Server => createServer({ allowHalfOpen: true }, (socket) => void socket.on('error', () => {}).pipe(socket))
const target = (port: number): string => JSON.stringify({ kind: 'tcp', host: '127.0.0.1', port })
const open = (socket: number, revision = '0'): StreamFromHost => ({ type: 'socket-open', socket, revision, id: 'call' })

t.test('a socket is opened, sent to and ended, and its bytes are told', async (t) => {
  const relay = relayOf()
  const host = new Host()
  relay.said(host, open(7), target(await portOf(t, echo())), NO_BODY)
  const chunk = Buffer.from('before ping after')
  relay.said(host, { type: 'stream-data', of: 'socket', number: 7 }, '', chunk.subarray(7, 11))
  chunk.fill('x')
  await host.until('stream-data')
  relay.said(host, { type: 'stream-credit', of: 'socket', number: 7, bytes: 4 }, '', NO_BODY)
  relay.said(host, { type: 'stream-data', of: 'socket', number: 7, end: true }, '', NO_BODY)
  t.match(await host.until('socket-closed'), { socket: 7, bytesOut: 4, bytesIn: 4, text: '{"ok":true}' })
  t.same(host.types, ['socket-connected', 'stream-data', 'stream-data', 'socket-closed'])
  t.match(host.said.slice(1, 3), [
    { of: 'socket', number: 7, body: 'ping' },
    { end: true, body: '' },
  ])
})

t.test('whose socket it is decides where to, and what is not deployed opens none', async (t) => {
  const relay = relayOf()
  const port = await portOf(t, echo())
  for (const [revision, code] of Object.entries({ '1': 'EACCES', 'deleted': 'EACCES' })) {
    const host = new Host()
    relay.said(host, open(1, revision), target(port), NO_BODY)
    t.match(JSON.parse((await host.until('socket-closed')).text), { ok: false, code }, revision)
  }
})

t.test('a host that is gone leaves no connection, and what went over is told', async (t) => {
  const accepted = Promise.withResolvers<Socket>()
  const port = await portOf(t, createServer(accepted.resolve))
  const unclaimed = Promise.withResolvers<unknown>()
  const relay = relayOf({ onUnclaimed: (_host, revision, bytes) => unclaimed.resolve([revision, bytes]) })
  const host = new Host()
  relay.said(host, open(1), target(port), NO_BODY)
  relay.said(host, { type: 'stream-data', of: 'socket', number: 1 }, '', Buffer.from('four'))
  const socket = await accepted.promise
  await once(socket, 'data')
  const left = once(
    socket.on('error', () => {}),
    'close',
  )
  relay.stopAll(host)
  relay.said(host, open(2), target(port), NO_BODY)
  await left
  t.same(await unclaimed.promise, ['0', { bytesOut: 4, bytesIn: 0 }])
  t.notOk(host.types.includes('socket-closed'))
})

t.test('what a host says of sockets that there are not does nothing', async (t) => {
  const relay = relayOf()
  const host = new Host()
  const messages: StreamFromHost[] = [
    { type: 'start-tls', socket: 9 },
    { type: 'socket-stop', socket: 9 },
    { type: 'stream-data', of: 'socket', number: 9 },
    { type: 'stream-credit', of: 'fetch', number: 9, bytes: 5 },
    { type: 'stream-abort', of: 'socket', number: 9, side: 'sent' },
  ]
  for (const message of messages) relay.said(host, message, 'text', Buffer.from('body'))
  relay.said(host, open(1), target(await portOf(t, echo())), NO_BODY)
  await host.until('socket-connected')
  relay.said(host, { type: 'stream-credit', of: 'socket', number: 1, bytes: 'much' as unknown as number }, '', NO_BODY)
  relay.said(host, { type: 'start-tls', socket: 1 }, 'nonsense', NO_BODY)
  t.match(JSON.parse((await host.until('socket-closed')).text), { ok: false, code: 'ERR_INVALID_ARG_VALUE' })
})

t.test('the body of a fetch streams to its upstream', async (t) => {
  const server = createHttpServer((request, response) => request.pipe(response))
  t.teardown(() => server.closeAllConnections())
  const port = await portOf(t, server)
  const relay = relayOf()
  const host = new Host()
  const head = JSON.stringify({ method: 'POST', url: `http://127.0.0.1:${port}/`, headers: [], redirect: 'follow' })
  relay.start(host, { fetch: 3, revision: '0', streams: true }, head, NO_BODY)
  for (const text of ['one ', 'two']) relay.said(host, { type: 'stream-data', of: 'fetch', number: 3 }, '', Buffer.from(text))
  relay.said(host, { type: 'stream-data', of: 'fetch', number: 3, end: true }, '', NO_BODY)
  const settled = await host.until('fetch-settled')
  t.match(JSON.parse(settled.text), { ok: true, status: 200 })
  t.equal(host.said.map(({ body }) => body).join(''), 'one two')
})

t.test('sockets are counted for their function until they are closed, also those of a host that is gone', async (t) => {
  const changes: string[] = []
  let wake = (): void => {}
  const relay = relayOf({
    socketsChanged: (functionName, change) => {
      changes.push(`${functionName} ${change}`)
      wake()
    },
  })
  const port = await portOf(t, echo())
  const host = new Host()
  relay.said(host, open(1, 'deleted'), target(port), NO_BODY)
  relay.said(host, open(2), target(port), NO_BODY)
  relay.said(host, open(2), target(port), NO_BODY)
  while (changes.length < 3) await new Promise<void>((resolve) => (wake = resolve))
  t.same(changes.toSorted(), ['own -1', 'own 1', 'own 1'], 'the first of the same number is stopped')
  relay.stopAll(host)
  while (changes.length < 4) await new Promise<void>((resolve) => (wake = resolve))
  t.equal(changes.at(-1), 'own -1')
})
