import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { UPSTREAM_ADDRESS } from './raw-upstream.ts'

/** Listens with the shortest queue that there is, says where, and never takes a connection out of it. */
const LISTENER = `
  const server = require('node:net').createServer()
  server.listen({ host: '${UPSTREAM_ADDRESS}', port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, server.address().port + '\\n')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`
/** More than the queue of the listener holds. */
const FILLING = 4

/** An address of which the machine never says whether anybody is there: connections to it are neither accepted nor refused. */
export async function openBlackHole(t: Test): Promise<string> {
  // Without the variables of tap, which would load its hooks.
  const child = spawn('env', ['-i', process.execPath, '-e', LISTENER], { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const fillers = Array.from({ length: FILLING }, () => connect(Number(port), UPSTREAM_ADDRESS).on('error', () => {}))
  t.teardown(() => {
    for (const filler of fillers) filler.destroy()
  })
  // One that is still connecting when the first has connected waits for a place that there will never be.
  await once(fillers[0] as (typeof fillers)[number], 'connect')
  return `http://${UPSTREAM_ADDRESS}:${port}/`
}
