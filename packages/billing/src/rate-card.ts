import type { MeterName } from './meter.ts'

/** What a platform charges, as far as it can be charged for usage that Carpool measured. The files in `cards/` have this form. */
export interface RateCard {
  /** Short name: letters, digits and hyphens. */
  readonly name: string
  /** What it is the card of, in one line. */
  readonly title: string
  /** Added up. */
  readonly prices: readonly Price[]
  /** What the platform charges or gives away and the card does not model, in sentences. */
  readonly leftOut: readonly string[]
}

/** The price of one meter. A bill asks `usd` × the meter's quantity ÷ `divisor`. */
export interface Price {
  /** Of its line in a bill. */
  readonly name: string
  readonly meter: MeterName
  /** How much of the meter makes one `unit`: 1,024,000 MiB × ms make a GB-second. */
  readonly divisor: number
  /** The unit in which the platform states the price. */
  readonly unit: string
  /** Price of one unit, in US dollars. */
  readonly usd: number
  /** Where the price stands in public: an address, or a document. */
  readonly source: string
  /** Date of the source, or if it has none, the day on which it was read: `2026-11-21`. */
  readonly asOf: string
  /** Whether the figure was read in the source itself, or a copy of it; false: only in what others wrote about it. */
  readonly checked: boolean
}
