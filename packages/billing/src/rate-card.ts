import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CarpoolError } from '@carpool/core'
import { METERS, type MeterName } from './meter.ts'

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
  /** Where the price is published: an address, or a document. */
  readonly source: string
  /** Date of the source, or if it has none, the day on which it was read: `2026-11-21`. */
  readonly asOf: string
  /** Whether the figure was read in the source itself, or a copy of it; false: only in what others wrote about it. */
  readonly checked: boolean
}

/** The cards that come with Carpool, from the one that charges most for waiting to those that charge least. */
export const RATE_CARD_NAMES = ['lambda-2018', 'lambda', 'cloud-run', 'active-cpu', 'workers'] as const
export type RateCardName = (typeof RATE_CARD_NAMES)[number]

export function isRateCardName(name: string): name is RateCardName {
  return RATE_CARD_NAMES.some((known) => known === name)
}

/** A card that comes with Carpool. */
export function rateCard(name: RateCardName): RateCard {
  return readRateCard(fileURLToPath(new URL(`../cards/${name}.json`, import.meta.url)))
}

const MAX_CARD_BYTES = 1024 * 1024

/** Reads a card from a file. @throws CarpoolError `invalid-config`, naming the file and what is wrong in it */
export function readRateCard(path: string): RateCard {
  return checkRateCard(parse(readText(path), path), path)
}

function readText(path: string): string {
  try {
    // A pipe or a device may never end.
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > MAX_CARD_BYTES) {
      throw new CarpoolError('invalid-config', `The rate card ${path} must be a file of at most ${MAX_CARD_BYTES} bytes.`)
    }
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if (cause instanceof CarpoolError) throw cause
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'there is no such file' : code
    throw new CarpoolError('invalid-config', `The rate card ${path} cannot be read: ${reason}.`, { cause })
  }
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CarpoolError('invalid-config', `The rate card ${path} is no JSON: ${reason}.`, { cause })
  }
}

interface Rule {
  /** What is allowed, as it follows "must be". */
  readonly allowed: string
  readonly accepts: (value: unknown) => boolean
}

const LONGEST_TEXT = 500
const MOST_ENTRIES = 100
const MAX_USD = 1_000_000
/** The meters count in small units, so a price is for many of them. */
const MAX_DIVISOR = 1e18

const TEXT: Rule = {
  allowed: `a line of text of 1 to ${LONGEST_TEXT} characters`,
  accepts: (value) => typeof value === 'string' && value.length <= LONGEST_TEXT && /^\P{Cc}+$/u.test(value),
}

/** The schema of a price: every key is required, and there are no others. */
const PRICE_RULES: { readonly [K in keyof Price]: Rule } = {
  name: TEXT,
  meter: {
    allowed: `one of ${Object.keys(METERS).join(', ')}`,
    accepts: (value) => typeof value === 'string' && Object.hasOwn(METERS, value),
  },
  divisor: {
    allowed: `a number from 1 to ${MAX_DIVISOR}`,
    accepts: (value) => isNumber(value) && value >= 1 && value <= MAX_DIVISOR,
  },
  unit: TEXT,
  usd: {
    allowed: `a number of US dollars from 0 to ${MAX_USD}`,
    accepts: (value) => isNumber(value) && value >= 0 && value <= MAX_USD,
  },
  source: TEXT,
  asOf: { allowed: 'a date such as "2026-11-21"', accepts: isDate },
  checked: { allowed: 'true or false', accepts: (value) => typeof value === 'boolean' },
}

/** The schema of a card: every key is required, and there are no others. */
const CARD_RULES: { readonly [K in keyof RateCard]: Rule } = {
  name: {
    allowed: 'a name of 1 to 64 letters, digits and hyphens',
    accepts: (value) => typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(value),
  },
  title: TEXT,
  prices: { allowed: `a list of 1 to ${MOST_ENTRIES} prices`, accepts: (value) => isList(value) && value.length > 0 },
  leftOut: {
    allowed: `a list of at most ${MOST_ENTRIES} lines of text`,
    accepts: (value) => isList(value) && value.every(TEXT.accepts),
  },
}

/**
 * Takes what a file holds as a rate card.
 * @param file how the file is called in an error
 * @throws CarpoolError `invalid-config`, naming the file, the key and what is allowed there
 */
export function checkRateCard(value: unknown, file: string): RateCard {
  const card = checkKeys<RateCard>(value, CARD_RULES, '', file)
  for (const [index, price] of card.prices.entries()) checkKeys<Price>(price, PRICE_RULES, `prices[${index}]`, file)
  return card
}

function checkKeys<T>(value: unknown, rules: { readonly [K in keyof T]: Rule }, path: string, file: string): T {
  const keys = Object.keys(rules)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refusal(file, `${path || 'The card'} must be an object with the keys ${keys.join(', ')}`, value)
  }
  const at = (key: string): string => (path === '' ? key : `${path}.${key}`)
  const unknownKey = Object.keys(value).find((key) => !keys.includes(key))
  if (unknownKey !== undefined) throw refusal(file, `there is no key ${at(unknownKey)}: the keys are ${keys.join(', ')}`)
  const given: Readonly<Record<string, unknown>> = { ...value }
  for (const [key, { allowed, accepts }] of Object.entries<Rule>(rules)) {
    if (!Object.hasOwn(given, key)) throw refusal(file, `${at(key)} is missing; it must be ${allowed}`)
    if (!accepts(given[key])) throw refusal(file, `${at(key)} must be ${allowed}`, given[key])
  }
  return value as T
}

function refusal(file: string, reason: string, ...got: readonly unknown[]): CarpoolError {
  const shown = got.map((value) => `, not ${abbreviate(JSON.stringify(value))}`).join('')
  return new CarpoolError('invalid-config', `In the rate card ${file}: ${reason}${shown}.`)
}

function abbreviate(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length <= MOST_ENTRIES
}

/** A day of the calendar: `Date.parse` reads 31 February as another day. */
function isDate(value: unknown): boolean {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return false
  const timeMs = Date.parse(value)
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(value)
}
