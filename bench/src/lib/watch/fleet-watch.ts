import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { FleetSample } from './fleet-sample.ts'

export interface FleetWatchOrder {
  readonly adminUrl: string
  readonly token: string
  readonly serverPid: number
  readonly intervalMs: number
}

export interface FleetWatch {
  /** Gives all samples since the watch began. Rejects if the server could not be asked meanwhile. */
  stop(): Promise<readonly FleetSample[]>
}

/** Samples a server's hosts from a thread of its own. Resolves after the first sample. */
export async function watchFleet(order: FleetWatchOrder): Promise<FleetWatch> {
  const worker = new Worker(new URL('fleet-watch-thread.ts', import.meta.url), { workerData: order })
  // A watch that is not stopped, because a bench failed, must not keep the process alive.
  worker.unref()
  await once(worker, 'message')
  let failure: Error | undefined
  // Where a bench fails, its server goes while it is watched: the bench is to tell of what came first.
  worker.on('error', (error: Error) => (failure = error))
  return {
    stop: async () => {
      if (failure !== undefined) throw failure
      worker.ref()
      const answer = once(worker, 'message') as Promise<[readonly FleetSample[]]>
      worker.postMessage('stop', [])
      const [samples] = await answer
      return samples
    },
  }
}
