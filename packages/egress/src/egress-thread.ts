/** The thread that connections of functions are made in. */
import { parentPort, workerData } from 'node:worker_threads'
import { failure } from './failure.ts'
import { createFetcher } from './fetcher.ts'
import type { FromThread, ThreadStart, ToThread } from './messages.ts'
import { Outbox } from './outbox.ts'

const fetcher = createFetcher(workerData as ThreadStart)
const running = new Map<number, AbortController>()
const outbox = new Outbox<FromThread>((items, transfers) => parentPort?.postMessage(items, [...transfers]), setImmediate)

async function carryOut({ number, request }: Extract<ToThread, { kind: 'fetch' }>): Promise<void> {
  const ending = new AbortController()
  running.set(number, ending)
  const { result, ...rest } = await fetcher.fetch(request, ending)
  running.delete(number)
  outbox.put({ kind: 'settled', number, settled: { result: JSON.stringify(result), ...rest } }, rest.body)
}

function take(item: ToThread): void {
  switch (item.kind) {
    case 'fetch':
      return void carryOut(item)
    case 'stop':
      return running.get(item.number)?.abort(failure('aborted'))
    case 'ping':
      return outbox.put({ kind: 'reading', reading: fetcher.reading })
  }
}

parentPort?.on('message', (items: readonly ToThread[]) => items.forEach(take))
