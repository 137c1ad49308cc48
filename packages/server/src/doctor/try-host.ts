import type { Duplex } from 'node:stream'
import type { HostProgram } from '@carpool/fleet'
import { Connection, type ToHost, type ToServer } from '@carpool/wire'

/** How long a host may take to make its first isolate, in ms, on a machine that is busy. */
const READY_MS = 30_000
/** What a host that does not start has to say is short. */
const MAX_COMPLAINT = 4_096

/** Starts one host process as a server does, and waits until it has made an isolate. @returns why it could not; undefined if all is well */
export async function tryHost(program: HostProgram & { cage: NonNullable<HostProgram['cage']> }): Promise<string | undefined> {
  const host = program.cage.spawn(program)
  const { child } = host
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    if (complaint.length < MAX_COMPLAINT) complaint += chunk
  })
  const limit = setTimeout(() => host.kill(), READY_MS)
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  try {
    return await new Promise<string | undefined>((resolve) => {
      child.once('error', (cause) => resolve((cause as NodeJS.ErrnoException).code ?? cause.message))
      child.once('close', (code, childSignal) => {
        const { exitCode, signal } = host.endOf(code, childSignal)
        resolve(lastError(complaint) ?? `It ended with ${signal ?? `exit code ${exitCode}`}.`)
      })
      const connection = new Connection<ToServer, ToHost>(child.stdio[3] as Duplex, {
        onMessage: (message) => {
          if (message.type === 'ready') resolve(undefined)
        },
        // The end of the process says more.
        onClose: () => {},
      })
      connection.send({ ...program.setup, prewarm: 1 }, program.runtime)
    })
  } finally {
    clearTimeout(limit)
    host.kill()
    if (child.pid !== undefined) await closed
  }
}

/** The line of a stack that says what is wrong. */
function lastError(complaint: string): string | undefined {
  const lines = complaint.split('\n').map((line) => line.trim())
  return lines.findLast((line) => /^(?:\w*Error|bwrap|setpriv|.*: not found)\b/.test(line)) ?? lines.find((line) => line !== '')
}
