import { now, timeOrigin } from './clock.ts'

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
