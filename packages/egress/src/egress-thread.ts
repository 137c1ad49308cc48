/** The thread in which the connections of functions are made. */
import { parentPort, workerData } from 'node:worker_threads'
import { failure } from './failure.ts'
import { Fetcher } from './fetcher.ts'
import { Outbox, type EgressPolicy, type EgressRequest, type FromThread, type ToThread } from './messages.ts'

const fetcher = new Fetcher(workerData as EgressPolicy)
const running = new Map<number, AbortController>()
const outbox = new Outbox<FromThread>((items, transfers) => parentPort?.postMessage(items, transfers), setImmediate)

async function fetch(number: number, request: EgressRequest): Promise<void> {
  const ending = new AbortController()
  running.set(number, ending)
  const { result, ...rest } = await fetcher.fetch(request, ending)
  running.delete(number)
  outbox.put({ kind: 'settled', number, settled: { result: JSON.stringify(result), ...rest } }, rest.body)
}

function receive(item: ToThread): void {
  switch (item.kind) {
    case 'fetch':
      return void fetch(item.number, item.request)
    case 'stop':
      return running.get(item.number)?.abort(failure('aborted'))
    case 'ping':
      return outbox.put({ kind: 'reading', reading: fetcher.reading })
  }
}

parentPort?.on('message', (items: readonly ToThread[]) => items.forEach(receive))
