import { IS_WHOLE } from '../../support/form.ts'

/** In which form the cases run. */
export interface Form {
  /** On a machine that does nothing else: attacks are repeated, and times asserted. */
  readonly isFull: boolean
  /** With all variants of attacks (variants.ts). */
  readonly hasVariants: boolean
  /** How often the neighbour is called. */
  readonly probesPerSecond: number
  /** For how long it is called while nothing else happens, in ms. */
  readonly aloneMs: number
  /** The same again before each case, in ms. */
  readonly refreshMs: number
  /** An attack is repeated for as long as this, so that enough calls of the neighbour fall into it, in ms. */
  readonly attackMs: number
  /** How long a file may take, in ms: it has many cases, on a machine that may have much else to do. */
  readonly fileMs: number
}

const SHORT: Form = {
  isFull: false,
  hasVariants: IS_WHOLE,
  probesPerSecond: 5,
  aloneMs: 0,
  refreshMs: 0,
  attackMs: 0,
  fileMs: 600_000,
}
const FULL: Form = {
  isFull: true,
  hasVariants: true,
  probesPerSecond: 50,
  aloneMs: 10_000,
  refreshMs: 1_000,
  attackMs: 4_000,
  fileMs: 1_800_000,
}

/**
 * The short form asserts what is right and what is wrong, and nothing that a busy machine could change; `CARPOOL_TESTS=whole`
 * has it try all variants. The full form (`CARPOOL_ISOLATION=full`) runs alone on a machine, tries them all, repeats each
 * attack, and asserts times as well.
 */
export const FORM: Form = process.env['CARPOOL_ISOLATION'] === 'full' ? FULL : SHORT
