/** The thread in which the connections of functions are made. */
import { parentPort, workerData } from 'node:worker_threads'
import { createEgressTurns, FetchTurns } from './fetch-turns.ts'
import { Fetcher } from './fetcher.ts'
import { Outbox, type EgressPolicy, type FromThread, type ToThread } from './messages.ts'
import { Outside } from './outside.ts'
import { Sockets } from './sockets.ts'

const policy = workerData as EgressPolicy
const outside = new Outside(policy)
const fetcher = new Fetcher(policy, outside)
const outbox = new Outbox<FromThread>((items, transfers) => parentPort?.postMessage(items, transfers), setImmediate)
const roundRobin = createEgressTurns()
const turns = new FetchTurns(
  (request, ending) => fetcher.fetch(request, ending),
  (number, { result, ...rest }) =>
    outbox.put({ kind: 'settled', number, settled: { result: JSON.stringify(result), ...rest } }, rest.body),
  roundRobin,
)
const sockets = new Sockets(outside, roundRobin, (item, bytes) => outbox.put(item, bytes))

function receive(item: ToThread): void {
  switch (item.kind) {
    case 'fetch':
      return turns.begin(item.number, item.request)
    case 'open':
      return sockets.open(item.number, item.request)
    case 'start-tls':
      return sockets.find(item.number)?.startTls(item.options)
    case 'data':
      return sockets.find(item.number)?.receive(item.part)
    case 'credit':
      return sockets.find(item.number)?.credit(item.bytes)
    case 'abort':
      return sockets.find(item.number)?.abort(item.side)
    case 'stop':
      turns.stop(item.number)
      return sockets.stop(item.number)
    case 'ping':
      return outbox.put({ kind: 'reading', reading: fetcher.reading })
  }
}

parentPort?.on('message', (items: readonly ToThread[]) => items.forEach(receive))
