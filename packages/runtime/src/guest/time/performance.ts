import { now, timeOrigin } from './clock.ts'

/** `performance` of the web, as far as it is about the time. */
export class Performance {
  get timeOrigin(): number {
    return timeOrigin()
  }

  now(): number {
    return now()
  }

  toJSON(): object {
    return { timeOrigin: timeOrigin() }
  }

  get [Symbol.toStringTag](): string {
    return 'Performance'
  }
}
