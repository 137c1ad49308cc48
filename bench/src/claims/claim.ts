import type { Environment } from '../lib/environment.ts'
import type { Verdict } from '../lib/verdict.ts'
import type { BenchName } from './benches.ts'

/** What a bench prints with `--json`. */
export interface BenchDocument {
  readonly environment: Environment
  readonly verdicts: readonly Verdict[]
  readonly results: unknown
}

/** One number of a claim, and how it is compared with what it was. */
export interface Figure {
  readonly value: number
  /** `told`: it depends on the load or the length of the run, and is compared with nothing. */
  readonly better: 'lower' | 'higher' | 'told'
  /** Share by which it differs from run to run without a reason: within it, it holds. */
  readonly noise: number
  /** Differences up to so much are noise too, in the unit of the value. */
  readonly noiseBy?: number
  /** A demand of the claim itself, besides those of the bench. */
  readonly atMost?: number
}

export interface Reading {
  /** What stands between the markers in the texts. */
  readonly text: string
  readonly figures: Readonly<Record<string, Figure>>
}

/** A statement of the texts that a bench measures. */
export interface Claim {
  /** Unique, as in the markers. */
  readonly name: string
  readonly bench: BenchName
  /** The scenario or part of the bench, where a bench can measure some alone. */
  readonly part?: string
  /** Which of the bench's own verdicts are about it. Default: none. */
  readonly verdicts?: RegExp
  /** What of it can be seen in a short run on a machine that others use too. Absent: nothing. */
  readonly quick?: { readonly verdicts?: RegExp; readonly figures?: readonly string[] }
  /** @throws Error if the document is not that of its bench */
  read(document: BenchDocument): Reading
}

const NOISE = 0.15

/** A figure that is better if it is lower. @param more differs from the default of 15 % noise */
export function lower(value: number, more: Partial<Figure> = {}): Figure {
  return { value, better: 'lower', noise: NOISE, ...more }
}

export function higher(value: number, more: Partial<Figure> = {}): Figure {
  return { value, better: 'higher', noise: NOISE, ...more }
}

/** A count of what must not happen. */
export function never(value: number): Figure {
  return { value, better: 'lower', noise: 0, atMost: 0 }
}

export function told(value: number): Figure {
  return { value, better: 'told', noise: 0 }
}

/** The verdicts of a bench whose text matches. */
export function verdictsOf({ verdicts }: BenchDocument, pattern: RegExp): Verdict[] {
  return verdicts.filter(({ claim }) => pattern.test(claim))
}

/** The sum of what such verdicts counted: their details begin with it. @throws RangeError if there is none */
export function countedBy(document: BenchDocument, pattern: RegExp): number {
  const found = verdictsOf(document, pattern)
  if (found.length === 0) throw new RangeError(`No verdict of the bench matches ${String(pattern)}.`)
  return found.reduce((sum, { detail }) => sum + Number.parseFloat(detail), 0)
}

/** ` (the aim is 2.00x)` if an aim of a bench was missed; else nothing. */
export function missedAim(document: BenchDocument, pattern: RegExp): string {
  const missed = verdictsOf(document, pattern).find(({ kind, isMet }) => kind === 'aim' && !isMet)
  const [, aim] = /\((at (?:least|most) [^)]+)\)/.exec(missed?.detail ?? '') ?? []
  return aim === undefined ? '' : ` (the aim is ${aim})`
}
