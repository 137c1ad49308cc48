import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { TreeUsage } from './tree-account.ts'

export interface ProcessWatch {
  /** Takes a last look and gives what was used since the watch began. */
  stop(): Promise<TreeUsage>
}

export interface WatchOrder {
  readonly rootPids: readonly number[]
  readonly intervalMs: number
}

const INTERVAL_MS = 50

/**
 * For servers under full load: a look takes a few milliseconds of a core, and keeps the watched process from changing its
 * memory map meanwhile, which costs the more the more processes a server has.
 */
export const SELDOM_MS = 1_000

/**
 * Watches processes and their descendants from a thread of its own, so that looking does not delay the calls that are measured.
 * Resolves after the first look.
 */
export async function watchProcesses(rootPids: readonly number[], intervalMs: number = INTERVAL_MS): Promise<ProcessWatch> {
  const workerData: WatchOrder = { rootPids, intervalMs }
  const worker = new Worker(new URL('process-watch-thread.ts', import.meta.url), { workerData })
  // A watch that is not stopped, because a bench failed, must not keep the process alive.
  worker.unref()
  await once(worker, 'message')
  return {
    stop: async () => {
      worker.ref()
      const answer = once(worker, 'message') as Promise<[TreeUsage]>
      worker.postMessage('stop', [])
      const [usage] = await answer
      return usage
    },
  }
}
