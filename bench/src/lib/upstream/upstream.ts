import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A service that functions fetch from, in a process of its own. */
export interface Upstream extends AsyncDisposable {
  readonly url: string
  /** Requests that come from now on are answered after so many ms. */
  setDelay(delayMs: number): void
}

export async function startUpstream(delayMs: number): Promise<Upstream> {
  const program = fileURLToPath(new URL('upstream-process.ts', import.meta.url))
  const child = fork(program, [], { execArgv: [], env: { PATH: process.env['PATH'] } })
  const [port] = (await once(child, 'message')) as [number]
  const setDelay = (ms: number): void => void child.send(ms)
  setDelay(delayMs)
  return {
    url: `http://127.0.0.1:${port}/`,
    setDelay,
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
