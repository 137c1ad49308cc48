import { constants } from 'node:os'
import type { Starter } from './starters.ts'
import { watchStarters } from './watch-starters.ts'

/** SIGHUP comes when the terminal is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** One key press may send two signals, a moment apart; a second key press comes later than that. */
const ECHO_MS = 500

/**
 * Resolves on the first SIGINT, SIGTERM or SIGHUP, and when what started this process has gone: its parent, or npm and what
 * stands between. What is meant to outlive its starter does so: under nohup, which makes it ignore SIGHUP as well, as leader of
 * a session (setsid), or as a service. It also resolves when nobody reads stdout any more. A second signal ends the process at
 * once, with 128 and the signal's number as exit code.
 * @param warn gets one line if the starter has gone
 * @returns the signal; undefined if it was none
 */
export function untilStopped(warn: (line: string) => void = () => {}): Promise<NodeJS.Signals | undefined> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals | undefined>()
  const watch = watchStarters((starter) => {
    warn(farewell(starter))
    resolve(undefined)
  })
  // One signal may come twice: a terminal sends it to all of us, and the launcher (bin/carpool.js) and npm pass it on. The
  // launcher says so, hence two counts. npm cannot, nor can a shell that sends SIGHUP and then ends, upon which the system
  // sends it again: only the time between them shows that.
  const firstMs: { direct?: number; launcher?: number } = {}
  for (const signal of STOP_SIGNALS) {
    const echoMs = signal === 'SIGHUP' || watch.isNextToNpm ? ECHO_MS : 0
    process.on(signal, (_, sender: unknown) => {
      if (signal === 'SIGHUP' && watch.ignoresHangUp) return watch.hungUp()
      const way = sender === 'launcher' ? 'launcher' : 'direct'
      const nowMs = performance.now()
      const first = firstMs[way]
      if (first !== undefined && nowMs - first >= echoMs) process.exit(128 + constants.signals[signal])
      firstMs[way] ??= nowMs
      watch.stop()
      resolve(signal)
    })
  }
  // While it ends, the terminal may be closed.
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') resolve(undefined)
  })
  return promise
}

function farewell(starter: Starter | undefined): string {
  const who = starter === undefined ? '' : `: ${starter.name ?? 'process'} (${starter.pid})`
  return [
    `What started this process has ended${who}. So it ends too.`,
    'To outlive the shell or script that starts it, start it with setsid, with nohup in a terminal, or as a service.',
  ].join(' ')
}
