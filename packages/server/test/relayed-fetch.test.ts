/** The bodies of a fetch, between its host, the egress and the streams that they are joined with. */
import type { EgressStream, StreamPart } from '@carpool/egress'
import type { StreamToHost } from '@carpool/fleet'
import t from 'tap'
import { RelayedFetch } from '../src/host-reports/relayed-fetch.ts'

const KIB = 1024
const WHOSE = { owner: 'o', functionName: 'f' }

/** A fetch, with what its host and the egress are told. */
function relayed() {
  const toHost: string[] = []
  const toEgress: string[] = []
  const told = (text: string, bytes: Uint8Array | undefined): string => `${text} ${bytes?.length ?? 0}`
  const host = {
    id: 1,
    settleFetch: () => {},
    sayOfStream: (_holder: unknown, message: StreamToHost, _text?: string, body?: Uint8Array) =>
      void toHost.push(told(message.type === 'stream-data' && message.end === true ? 'end' : message.type, body)),
  }
  const stream: EgressStream = {
    send: ({ bytes, end }: StreamPart) => void toEgress.push(told(end === true ? 'end' : 'data', bytes)),
    credit: (bytes) => void toEgress.push(`credit ${bytes}`),
    abort: (side) => void toEgress.push(`abort ${side}`),
    stop: () => void toEgress.push('stop'),
  }
  const fetch = new RelayedFetch(host, WHOSE, 1)
  fetch.stream = stream
  return { fetch, toHost, toEgress }
}

/** Takes bytes as an answer does. */
class Target {
  aheadBytes = 0
  readonly got: string[] = []

  write(bytes: Uint8Array): void {
    this.aheadBytes += bytes.length
    this.got.push(Buffer.from(bytes).toString())
  }
}

t.test('a response is passed on past its host, and its end is told there', async (t) => {
  const { fetch, toHost, toEgress } = relayed()
  const { events } = fetch
  events.head('{}')
  events.data({ bytes: Buffer.from('abc') })
  t.notOk(fetch.hasSent(2), 'more has left for the host')
  t.ok(fetch.hasSent(3))
  const target = new Target()
  // The caller has one of the three bytes that came by way of the host.
  target.aheadBytes = 2
  fetch.passTo(target)
  t.same(toEgress, ['credit 1'])
  t.notOk(fetch.hasSent(3), 'it is joined once')
  events.data({ bytes: Buffer.from('defg') })
  t.same([toHost, target.got], [['fetch-head 0', 'stream-data 3'], ['defg']])
  fetch.credit(1e12)
  t.equal(toEgress.length, 1, 'credit of the host counts no more')
  target.aheadBytes = 4
  fetch.goOn()
  fetch.goOn()
  t.same(toEgress.slice(1), ['credit 2'])
  events.data({ bytes: Buffer.from('h'), end: true })
  t.same([toHost.slice(2), target.got], [['end 0'], ['defg', 'h']])
  fetch.stop({ bytesOut: 0, bytesIn: 5 })
  events.data({ bytes: Buffer.from('late') })
  t.same([target.got.length, toEgress.at(-1)], [2, 'stop'])
  t.same(fetch.unclaimedOf({ bytesOut: 7, bytesIn: 8 }), { bytesOut: 7, bytesIn: 3 })
  t.same(fetch.unclaimedOf({ bytesOut: 0, bytesIn: 1 }), { bytesOut: 0, bytesIn: 0 }, 'a host may have counted more')
})

t.test('a body that has ended is not joined', async (t) => {
  const { fetch } = relayed()
  fetch.events.data({ bytes: Buffer.from('abc'), end: true })
  t.notOk(fetch.hasSent(3))
})

t.test('a host credits no more than came', async (t) => {
  const { fetch, toEgress } = relayed()
  fetch.events.data({ bytes: Buffer.from('abc') })
  for (const bytes of [2, 1e12, 5]) fetch.credit(bytes)
  t.same(toEgress, ['credit 2', 'credit 1'])
})

t.test('a request takes what is passed on, and from its host the end alone', async (t) => {
  const { fetch, toHost, toEgress } = relayed()
  fetch.send({ bytes: new Uint8Array(KIB) })
  fetch.events.credit(KIB)
  t.ok(fetch.isJoinable)
  let goesOn = 0
  fetch.joinWith({ goOn: () => goesOn++ })
  t.notOk(fetch.isJoinable)
  fetch.write(new Uint8Array(64 * KIB))
  t.equal(fetch.aheadBytes, 64 * KIB)
  fetch.send({ bytes: new Uint8Array(5) })
  fetch.events.credit(64 * KIB)
  t.same([fetch.aheadBytes, goesOn], [0, 1])
  fetch.send({ bytes: new Uint8Array(5), end: true })
  t.same(toEgress, ['data 1024', 'data 65536', 'end 0'])
  t.same(toHost, ['stream-credit 0'], 'of what came from there')
})
