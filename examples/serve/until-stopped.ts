/** A terminal and npm both pass on one Ctrl+C, a moment apart; somebody who presses it again takes longer. */
const SAME_KEY_PRESS_MS = 500

/** Resolves on Ctrl+C or SIGTERM. A second one ends the process at once. */
export function untilStopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let firstAt: number | undefined
  const stop = (): void => {
    const now = performance.now()
    firstAt ??= now
    if (now - firstAt > SAME_KEY_PRESS_MS) process.exit(130)
    resolve()
  }
  process.on('SIGINT', stop).on('SIGTERM', stop)
  return promise
}
