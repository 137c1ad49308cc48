import { duplexPair, type Duplex } from 'node:stream'
import { NO_USAGE, NOBODY, type Call, type FunctionSocket } from '@carpool/core'
import { Connection, packUsage, type ToHost, type ToServer } from '@carpool/wire'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { HostConnection, type HostEvents } from '../src/pool/host-connection.ts'
import type { HostProgram } from '../src/pool/os-process.ts'

const MB = 1024 * 1024

/** A connection with a host that reads nothing at first, and then answers each call. */
class Rig {
  /** What the server is told of its calls, in order. */
  readonly told: string[] = []
  readonly connection: HostConnection
  readonly #far: Duplex

  constructor() {
    const [near, far] = duplexPair()
    this.#far = far
    const tell = (call: Call, what: string): void => void this.told.push(`${call.number} ${what}`)
    const events = {
      answered: (call, { outcome }) => tell(call, outcome),
      unbegun: (call) => tell(call, 'unbegun'),
      closed: () => {},
    } satisfies Partial<HostEvents>
    const program = { setup: { type: 'setup', maxBodyBytes: 100 * MB }, runtime: '' } as unknown as HostProgram
    this.connection = new HostConnection(near, program, 0, events as unknown as HostEvents)
  }

  send(functionName: string, bytes: number): Call {
    const call = routedCall(functionName)
    call.body = Buffer.alloc(bytes, 1)
    this.connection.give(call.revision, { source: '' })
    this.connection.send(call)
    return call
  }

  /** Closes the connection behind all that is to be sent. @returns what the host has read, with the sizes of bodies */
  async readAll(): Promise<string[]> {
    const read: string[] = []
    const ended = Promise.withResolvers<void>()
    const host = new Connection<ToHost, ToServer>(this.#far, {
      onMessage: (message, _text, body) => {
        if (message.type === 'setup' || message.type === 'load') return
        read.push([message.type, 'invocation' in message ? message.invocation : '', body.length].join(' '))
        if (message.type === 'invoke') {
          const head = JSON.stringify({ status: 200, headers: [] })
          host.send({ type: 'answer', invocation: message.invocation, start: 'warm', usage: packUsage(NO_USAGE) }, head)
        } else if (message.type === 'fetch-settled' && message.fetch === 999) ended.resolve()
      },
      onClose: () => {},
    })
    // As large as the others, so it comes behind them.
    this.connection.settleFetch(NOBODY, 999, '{}', new Uint8Array(40 * MB), { bytesOut: 0, bytesIn: 0 })
    await ended.promise
    return read.slice(0, -1)
  }
}

t.test('a small call goes past a large one, and both are answered', async (t) => {
  const rig = new Rig()
  rig.send('large', 20 * MB)
  rig.send('small', 100)
  t.same(await rig.readAll(), ['invoke 2 100', `invoke 1 ${20 * MB}`])
  t.same(rig.told, ['2 ok', '1 ok'])
})

t.test('of a call that is canceled before its body has left the host learns nothing', async (t) => {
  const rig = new Rig()
  const [first, second] = [rig.send('f', 20 * MB), rig.send('f', 20 * MB)]
  const small = rig.send('f', 100)
  for (const call of [first, second, small]) rig.connection.cancel(call)
  t.same(rig.told, ['1 canceled', '2 canceled'])
  t.same(await rig.readAll(), ['invoke 3 100', 'cancel 3 0'])
})

t.test('a revision is retired behind the calls of it that were sent', async (t) => {
  const rig = new Rig()
  rig.send('old', 20 * MB)
  rig.send('other', 20 * MB)
  rig.connection.retire('old')
  t.same(await rig.readAll(), [`invoke 1 ${20 * MB}`, 'retire  0', `invoke 2 ${20 * MB}`])
})

t.test('a call that is taken back while its body leaves never comes to the host that woke up', async (t) => {
  const rig = new Rig()
  rig.send('f', 20 * MB)
  rig.send('g', 20 * MB)
  rig.connection.takeBackAfter(1)
  t.same(rig.told, ['2 unbegun'])
  t.same(await rig.readAll(), [`invoke 1 ${20 * MB}`])
})

t.test('what the client of a WebSocket has said comes before its leaving', async (t) => {
  const [near, far] = duplexPair()
  const read: string[] = []
  const canceled = Promise.withResolvers<void>()
  const program = { setup: { type: 'setup', maxBodyBytes: 100 * MB }, runtime: '' } as unknown as HostProgram
  const connection = new HostConnection(near, program, 0, { answersChanged: () => {} } as unknown as HostEvents)
  const host = new Connection<ToHost, ToServer>(far, {
    onMessage: (message) => {
      if (message.type === 'invoke') {
        const head = JSON.stringify({ status: 101, headers: [] })
        host.send({ type: 'answer-head', invocation: message.invocation, start: 'warm' }, head)
      } else if (message.type === 'stream-data' || message.type === 'cancel') read.push(message.type)
      if (message.type === 'cancel') canceled.resolve()
    },
    onClose: () => {},
  })
  const call = routedCall('f')
  const accepted = Promise.withResolvers<FunctionSocket>()
  call.acceptWebSocket = (_head, peer) => {
    accepted.resolve(peer)
    return { send: () => {}, close: () => {}, credited: () => {} }
  }
  connection.give(call.revision, { source: '' })
  connection.send(call)
  const peer = await accepted.promise
  far.pause()
  connection.settleFetch(NOBODY, 999, '{}', new Uint8Array(20 * MB), { bytesOut: 0, bytesIn: 0 })
  for (let count = 0; count < 3; count++) peer.part('bytes', Buffer.alloc(1000), false)
  connection.cancel(call)
  far.resume()
  await canceled.promise
  t.same(read, ['stream-data', 'stream-data', 'stream-data', 'cancel'])
})
