/**
 * The caller and the upstream of the neighbour. They have a thread of their own: attacks are made in the test's, whose event
 * loop thousands of clients and connections hold up, and that is no wait of the neighbour.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { call, shown } from './call.ts'

/** From the test: calls from now on until told to stop. */
export type ToNeighbour =
  | { readonly watch: { readonly url: string; readonly perSecond: number; readonly firstNumber: number } }
  | 'stop'

/** First where the upstream is; then, after each `stop`, how the calls fared. */
export type FromNeighbour =
  | { readonly upstreamUrl: string }
  | {
      readonly calls: number
      readonly wrong: readonly string[]
      readonly tookMs: readonly number[]
    }

const upstream = createServer((request, response) => response.end(`pong ${request.url?.split('?')[1] ?? ''}`))
upstream.listen(0, workerData as string, () => {
  const { address, port } = upstream.address() as AddressInfo
  post({ upstreamUrl: `http://${address}:${port}/` })
})

let stop: (() => Promise<FromNeighbour>) | undefined

parentPort?.on('message', (message: ToNeighbour) => {
  if (message === 'stop') void stop?.().then(post)
  else stop = watch(message.watch)
})

function watch({ url, perSecond, firstNumber }: Exclude<ToNeighbour, 'stop'>['watch']): () => Promise<FromNeighbour> {
  const pending = new Set<Promise<void>>()
  const wrong: string[] = []
  const tookMs: number[] = []
  const startMs = performance.now()
  let due = 0
  const callDue = (): void => {
    // A timer that is late makes up for it, and the delay counts: who calls at a rate does not wait for a slow answer.
    for (; startMs + (due * 1000) / perSecond <= performance.now(); due++) {
      const dueMs = startMs + (due * 1000) / perSecond
      const number = firstNumber + due
      const probe = call(`${url}&number=${number}`).then((answer) => {
        tookMs.push(performance.now() - dueMs)
        if (answer.status !== 200 || answer.text !== `mine pong ${number}`) wrong.push(shown(answer))
        pending.delete(probe)
      })
      pending.add(probe)
    }
  }
  callDue()
  const timer = setInterval(callDue, Math.min(10, 1000 / perSecond))
  return async () => {
    clearInterval(timer)
    await Promise.all(pending)
    return { calls: due, wrong, tookMs }
  }
}

function post(message: FromNeighbour): void {
  parentPort?.postMessage(message, [])
}
