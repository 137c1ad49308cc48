import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from '../../support/command.ts'
import { temporaryFolder } from '../../support/server.ts'

/** What nobody may find, and where nobody may come. */
export interface Canary {
  /** Data folder of the server, with the secret in a file. */
  readonly dataDir: string
  /** In the environment of the server, in its data folder, and in the environment of the neighbour. */
  readonly secret: string
  /** Listens on 127.0.0.1, which no function may reach. */
  readonly port: number
  readonly socketPath: string
  /** Connections that came, where none may come. */
  readonly touches: readonly string[]
  /** What of a text must not be there; empty if nothing is. */
  leaksIn(text: string): string[]
}

/** What of a host must never be in what a function or a caller sees. */
const HOST_TEXT = [/node:internal/, /node_modules/, /isolated-vm/, /\/carpool-test-/, /\.ts:\d+/, /file:\/\//]

/** Hides a secret and listens where no function may connect to. */
export async function setCanary(t: Test): Promise<Canary> {
  const secret = `canary${randomBytes(12).toString('hex')}`
  const dataDir = temporaryFolder(t)
  writeFileSync(join(dataDir, 'canary.txt'), secret)
  // The one variable that a server under test takes over from the environment of the test.
  const path = process.env['PATH']
  process.env['PATH'] = `${path}:/${secret}`
  t.teardown(() => (process.env['PATH'] = path))

  const touches: string[] = []
  const socketPath = join(temporaryFolder(t), 'canary.sock')
  const tcp = createServer((socket) => touches.push(`127.0.0.1 from ${socket.destroy().remotePort}`))
  const unix = createServer((socket) => touches.push(`unix ${String(socket.destroy().destroyed)}`))
  await Promise.all([listen(tcp, { port: 0, host: '127.0.0.1' }), listen(unix, { path: socketPath })])
  t.teardown(() => {
    tcp.close()
    unix.close()
  })
  const address = tcp.address()
  if (address === null || typeof address === 'string') throw new Error('The canary has no port.')
  const forbidden = [secret, Buffer.from(secret).toString('base64').slice(0, -4), dataDir, ROOT]
  return {
    dataDir,
    secret,
    port: address.port,
    socketPath,
    touches,
    leaksIn: (text) => [
      ...forbidden.filter((one) => text.includes(one)),
      ...HOST_TEXT.flatMap((pattern) => pattern.exec(text)?.slice(0, 1) ?? []),
    ],
  }
}

function listen(server: Server, where: { port: number; host: string } | { path: string }): Promise<void> {
  return new Promise((resolve, reject) => server.once('error', reject).listen(where, resolve))
}
