import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LoadOrder, LoadResult } from './load-order.ts'
import { epochMs } from './timed-call.ts'

/** A load generator in a process of its own: its event loop is neither the bench's nor that of another generator. */
export interface Generator {
  readonly pid: number
  /** Begins the load. @param atMs in ms of the epoch, so that several can begin together; default: at once */
  begin(atMs?: number): void
  /** Begins no more calls; those under way are waited for. */
  stop(): void
  /** Rejects if the process ends without a result. */
  readonly result: Promise<LoadResult>
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a generator and waits until its connections are open. @throws Error if it cannot get ready */
export async function startGenerator(order: LoadOrder): Promise<Generator> {
  const program = fileURLToPath(new URL('generator-process.ts', import.meta.url))
  // What stands in our environment for Node.js is not meant for the generator.
  const child = fork(program, [], { serialization: 'advanced', execArgv: [], env: { PATH: process.env['PATH'] } })
  running.add(child)
  const ended = once(child, 'exit').then(([code]) => {
    running.delete(child)
    throw new Error(`The load generator ended with code ${String(code)} and without a result.`)
  })
  child.send(order)
  const [said] = (await Promise.race([once(child, 'message'), ended])) as [string]
  if (said !== 'ready') throw new Error(`The load generator could not open its connections: ${said}`)
  const answer = once(child, 'message') as Promise<[LoadResult]>
  const result = Promise.race([answer, ended]).then(([value]) => value)
  // Nobody may have looked at it yet when it ends; who does is told all the same.
  ended.catch(() => {})
  result.catch(() => {})
  return {
    pid: child.pid ?? 0,
    begin: (atMs = epochMs()) => void child.send(atMs),
    stop: () => void (child.connected && child.send('stop')),
    result,
  }
}

/** Gets a load ready, runs it and gives what came of it. */
export async function runLoad(order: LoadOrder): Promise<LoadResult> {
  const generator = await startGenerator(order)
  generator.begin()
  return generator.result
}
