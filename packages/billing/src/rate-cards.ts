import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CarpoolError } from '@carpool/core'
import { checkRateCard } from './check-rate-card.ts'
import type { RateCard } from './rate-card.ts'

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
