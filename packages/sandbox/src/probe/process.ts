/**
 * A program with a hole, to be started exactly as a host is: it does what it is told over the socket that it inherits, as code would that got out
 * of its isolate. It shows what the cage around it stops.
 */
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { attempt } from './attempts.ts'
import { ownFacts } from './facts.ts'
import type { ProbeAnswer, ProbeOrder } from './messages.ts'

const SERVER_SOCKET_FD = 3

const socket = new Socket({ fd: SERVER_SOCKET_FD, readable: true, writable: true })
socket.once('close', () => process.kill(process.pid, 'SIGKILL'))
for await (const line of createInterface({ input: socket })) {
  const { canaries, attempts, tellsFacts } = JSON.parse(line) as ProbeOrder
  const facts = tellsFacts ? ownFacts() : undefined
  const results = Object.fromEntries(
    await Promise.all(attempts.map(async (name) => [name, await attempt(name, canaries)] as const)),
  )
  const answer: ProbeAnswer = { results, ...(facts !== undefined && { facts }) }
  socket.write(`${JSON.stringify(answer)}\n`)
}
