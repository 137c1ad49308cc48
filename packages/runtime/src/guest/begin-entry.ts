import { markEntry } from './spans.ts'
import { markClock } from './time/clock.ts'

/** The host has entered the isolate, but to load it: measures what comes, and sets the time that its code sees. */
export function beginEntry(): void {
  markEntry()
  markClock()
}
