import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { until } from '../support/server.ts'

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

/** Starts an app as its author would, in Node.js. */
export async function startInNode(t: Test, file: string): Promise<string> {
  const port = await freePort()
  const variables = ['-i', `PATH=${process.env['PATH']}`, 'NODE_ENV=production', `PORT=${port}`]
  const child = spawn('env', [...variables, process.execPath, file], { stdio: ['ignore', 'inherit', 'inherit'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await until(
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, '127.0.0.1')
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
        socket.once('connect', () => socket.destroy())
      }),
  )
  return `http://127.0.0.1:${port}`
}
