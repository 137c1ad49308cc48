/** The thread in which the connections of functions are made. */
import { parentPort, workerData } from 'node:worker_threads'
import { Fetcher } from './fetcher.ts'
import { Outbox, type EgressPolicy, type FromThread, type ToThread } from './messages.ts'
import { FetchTurns } from './fetch-turns.ts'

const fetcher = new Fetcher(workerData as EgressPolicy)
const outbox = new Outbox<FromThread>((items, transfers) => parentPort?.postMessage(items, transfers), setImmediate)
const turns = new FetchTurns(
  (request, ending) => fetcher.fetch(request, ending),
  (number, { result, ...rest }) =>
    outbox.put({ kind: 'settled', number, settled: { result: JSON.stringify(result), ...rest } }, rest.body),
)

function receive(item: ToThread): void {
  switch (item.kind) {
    case 'fetch':
      return turns.begin(item.number, item.request)
    case 'stop':
      return turns.stop(item.number)
    case 'ping':
      return outbox.put({ kind: 'reading', reading: fetcher.reading })
  }
}

parentPort?.on('message', (items: readonly ToThread[]) => items.forEach(receive))
