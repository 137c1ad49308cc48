/** The program of a host process. All it has is the socket that it inherits as descriptor 3. */
import { Socket } from 'node:net'
import { Connection, type Setup, type ToHost, type ToServer } from '@carpool/wire'
import { Host } from './host.ts'

const SERVER_SOCKET_FD = 3

let host: Host | undefined

const connection = new Connection<ToHost, ToServer>(new Socket({ fd: SERVER_SOCKET_FD, readable: true, writable: true }), {
  onMessage: (message, text, body) => {
    if (message.type === 'setup') setUp(message, text)
    else host?.receive(message, text, body)
  },
  onClose: (reason) => (reason === undefined ? end() : giveUp(reason)),
})

process.on('uncaughtException', giveUp)
process.on('unhandledRejection', giveUp)

function setUp(setup: Setup, runtime: string): void {
  const started = new Host({
    setup,
    runtime,
    send: (message, text, body) => connection.send(message, text, body),
    bodies: connection.bodies,
    backlogBytes: () => connection.backlogBytes,
    onProblem: (text) => console.error(text),
    onCatastrophe: (reason) => giveUp(new Error(`V8 gave up on an isolate: ${reason}`)),
  })
  host = started
  started.prepare().then(() => connection.send({ type: 'ready' }), giveUp)
}

function giveUp(reason: unknown): void {
  console.error(reason)
  end()
}

/** An ordinary exit waits for the isolates' threads, and one that is stuck in user code would keep the process for ever. */
function end(): void {
  process.kill(process.pid, 'SIGKILL')
}
