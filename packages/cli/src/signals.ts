import { constants } from 'node:os'

/** SIGHUP comes when the terminal is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Resolves on the first SIGINT, SIGTERM or SIGHUP. A second signal ends the process at once, with 128 and the signal's number as exit code.
 */
export function untilStopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // The same signal may come twice if there is a launcher in front (bin/carpool.js): a terminal sends it to both of us, and the
  // launcher passes it on. So the number of signals is the larger of the two counts, not their sum.
  const counts = { direct: 0, launcher: 0 }
  for (const signal of STOP_SIGNALS) {
    process.on(signal, (_, sender: unknown) => {
      counts[sender === 'launcher' ? 'launcher' : 'direct'] += 1
      if (Math.max(counts.direct, counts.launcher) > 1) process.exit(128 + constants.signals[signal])
      resolve()
    })
  }
  return promise
}
