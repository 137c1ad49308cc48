import { EventTarget } from './events.ts'
import { now, timeOrigin } from './host.ts'

/** `performance` of the web, as far as it is about the time; a library has user timing. */
export class Performance extends EventTarget {
  get timeOrigin(): number {
    return timeOrigin()
  }

  now(): number {
    return now()
  }

  toJSON(): object {
    return { timeOrigin: timeOrigin() }
  }

  override get [Symbol.toStringTag](): string {
    return 'Performance'
  }
}
