import { dateNow } from './primordials.ts'

/** Calls, and UTF-16 units of text in them, that may be on their way to the host: it keeps them outside every memory limit. */
const CREDIT_CALLS = 256
const CREDIT_UNITS = 512 * 1024

let drain: () => number
let calls = 0
let units = 0

export function startCredits(drainHost: () => number): void {
  drain = drainHost
}

// What is over is sent only after the drain, and credits come back only when the drain is through: a stack overflow, which user code can
// bring about at any point of this, must not let a call pass uncounted.

/** Counts a call, before it is made, that user code can make as often as it likes. Blocks when the credits are used up. */
export function spendCall(textUnits: number): void {
  calls++
  spendText(textUnits)
}

/** The same for a call of which the host caused each: only its text counts. */
export function spendText(textUnits: number): void {
  units += textUnits
  if (calls <= CREDIT_CALLS && units <= CREDIT_UNITS) return
  const pauseMs = drain()
  if (pauseMs > 0) pause(pauseMs)
  calls = 0
  units = 0
}

/** Holds up user code, which is what floods the host. */
function pause(ms: number): void {
  const startedMs = dateNow()
  for (;;) {
    const passedMs = dateNow() - startedMs
    // The machine's clock may be set back.
    if (passedMs >= ms || passedMs < 0) return
  }
}
