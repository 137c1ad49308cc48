import { clockNs } from './clock.ts'
import { SafeFloat64Array } from './primordials.ts'

/** More than the host has run without asking. */
const KEPT = 128

const startsNs = new SafeFloat64Array(KEPT)
let marks = 0
let isMarking = false

/** An entry begins. Nothing is measured until the host has asked once: reading the clock is not free, and most functions never need it. */
export function markEntry(): void {
  if (!isMarking) return
  startsNs[marks % KEPT] = clockNs()
  marks++
}

/** Entry: how long each of the last `count` entries took; see the bridge. */
export function spans(count: number): string {
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
