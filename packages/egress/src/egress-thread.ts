/** The thread in which the connections of functions are made. */
import { parentPort, workerData } from 'node:worker_threads'
import { FetchStream } from './fetch-stream.ts'
import { FetchTurns } from './fetch-turns.ts'
import { Fetcher } from './fetcher.ts'
import { Outbox, type EgressPolicy, type EgressRequest, type FromThread, type ToThread } from './messages.ts'
import { Outside } from './outside.ts'
import { Sockets, type SocketStream } from './sockets.ts'

const policy = workerData as EgressPolicy
const outside = new Outside(policy)
const fetcher = new Fetcher(policy, outside)
const outbox = new Outbox<FromThread>((items, transfers) => parentPort?.postMessage(items, transfers), setImmediate)
const turns = new FetchTurns(
  (request, ending, stream) => fetcher.fetch(request, ending, stream),
  (number, { result, ...rest }) =>
    outbox.put({ kind: 'settled', number, settled: { result: JSON.stringify(result), ...rest } }, rest.body),
  outside.turns,
)
const sockets = new Sockets(outside, (item, bytes) => outbox.put(item, bytes))

/** For the bodies of a fetch, if any may stream. */
function streamOf(number: number, request: EgressRequest): FetchStream | undefined {
  const { streams = false, takesStream = false } = request
  if (!streams && !takesStream) return undefined
  return new FetchStream(
    outside,
    { holder: request, streams, takesStream },
    {
      head: (head) => outbox.put({ kind: 'head', number, head: JSON.stringify(head) }),
      data: (part) => outbox.put({ kind: 'data', number, part }, part.bytes),
      credit: (bytes) => outbox.put({ kind: 'credit', number, bytes }),
      stopped: () => outbox.put({ kind: 'stopped', number }),
    },
  )
}

/** What a number belongs to, if it streams. */
function find(number: number): FetchStream | SocketStream | undefined {
  return sockets.find(number) ?? turns.find(number)
}

function receive(item: ToThread): void {
  switch (item.kind) {
    case 'fetch':
      return turns.begin(item.number, item.request, streamOf(item.number, item.request))
    case 'open':
      return sockets.open(item.number, item.request)
    case 'start-tls':
      return sockets.find(item.number)?.startTls(item.options)
    case 'data':
      return find(item.number)?.receive(item.part)
    case 'credit':
      return find(item.number)?.credit(item.bytes)
    case 'abort':
      return find(item.number)?.abort(item.side)
    case 'stop':
      turns.stop(item.number)
      return sockets.stop(item.number)
    case 'ping':
      return outbox.put({ kind: 'reading', reading: fetcher.reading })
  }
}

parentPort?.on('message', (items: readonly ToThread[]) => items.forEach(receive))
