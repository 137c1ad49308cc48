import { SafeFloat64Array } from './primordials.ts'
import { clockNs } from './time/clock.ts'

/** More than the host has run without asking. */
const KEPT = 128

let begin: (() => void) | undefined
let end: (() => string) | undefined
const startsNs = new SafeFloat64Array(KEPT)
let marks = 0
let isMarking = false

/** Has entries measured by the CPU clock of the thread that they run on. */
export function useEntryClock(beginEntry: (() => void) | undefined, endEntries: (() => string) | undefined): void {
  begin = beginEntry
  end = endEntries
}

/** An entry begins. Without a CPU clock nothing is measured until the host has asked once, for most functions never need it. */
export function markEntry(): void {
  if (begin !== undefined) begin()
  else if (isMarking) {
    startsNs[marks % KEPT] = clockNs()
    marks++
  }
}

/** Entry: how long each of the last `count` entries took; see the bridge. */
export function spans(count: number): string {
  if (end !== undefined) return end()
  if (!isMarking) {
    isMarking = true
    return ''
  }
  if (count > marks || count > KEPT) return ''
  let text = ''
  let endNs = clockNs()
  for (let index = marks - 1; index >= marks - count; index--) {
    const startNs = startsNs[index % KEPT]!
    const spanNs = endNs - startNs
    text = text === '' ? `${spanNs}` : `${spanNs},${text}`
    endNs = startNs
  }
  return text
}
