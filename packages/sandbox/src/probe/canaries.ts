import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startedTicks } from '../process-tree.ts'
import type { Canaries } from './attempts.ts'

let lastNumber = 0

/** Puts up what a probe is to try to reach: files, listeners, and this process itself. Whoever calls takes it away again. */
export async function openCanaries(): Promise<{ readonly canaries: Canaries; close(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-canary-'))
  // Open to everyone: only what keeps a host from getting there at all is to stop it.
  chmodSync(folder, 0o777)
  const file = join(folder, 'canary')
  writeFileSync(file, 'canary', { mode: 0o644 })
  const socketPath = join(folder, 'socket')
  const socketName = `\0carpool-canary-${process.pid}-${++lastNumber}`
  const udp = createSocket('udp4')
  udp.on('message', (message, { port, address }) => udp.send(message, port, address))
  udp.on('error', () => {})
  const servers = [createServer(hangUp), createServer(hangUp), createServer(hangUp)] as const
  const [tcp, unix, abstract] = servers
  const close = (): void => {
    for (const server of servers) server.close()
    udp.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    udp.bind(0, '127.0.0.1')
    tcp.listen(0, '127.0.0.1')
    unix.listen(socketPath)
    // Only Linux has such names.
    if (process.platform === 'linux') abstract.listen(socketName)
    await Promise.all([
      once(udp, 'listening'),
      listening(tcp),
      listening(unix),
      process.platform === 'linux' && listening(abstract),
    ])
    chmodSync(socketPath, 0o777)
    const { port: tcpPort } = tcp.address() as AddressInfo
    const server = { pid: process.pid, startedTicks: ownStart() }
    return { canaries: { folder, file, tcpPort, udpPort: udp.address().port, socketPath, socketName, ...server }, close }
  } catch (cause) {
    close()
    throw cause
  }
}

function ownStart(): string {
  try {
    return startedTicks('self')
  } catch {
    // No /proc.
    return ''
  }
}

function hangUp(socket: { destroy(): unknown }): void {
  socket.destroy()
}

async function listening(server: Server): Promise<void> {
  await once(server, 'listening')
}
