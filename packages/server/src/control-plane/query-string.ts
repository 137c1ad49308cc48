import { CarpoolError } from '@carpool/core'

/** Checks that a query string has only known parameters, each once. @throws CarpoolError `bad-request`, naming the parameter */
export function readQuery<K extends string>(
  query: Readonly<Record<string, unknown>>,
  known: readonly K[],
): Partial<Record<K, string>> {
  for (const [key, value] of Object.entries(query)) {
    if (!(known as readonly string[]).includes(key)) {
      throw badParameter(`There is no parameter ${JSON.stringify(key)}: there are ${known.join(', ')}.`)
    }
    if (typeof value !== 'string') throw badParameter(`The parameter ${key} may be given only once.`)
  }
  return query as Partial<Record<K, string>>
}

/** @throws CarpoolError `bad-request` */
export function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text)
  if (/^\d{1,16}$/.test(text) && value <= max) return value
  throw badParameter(`The parameter ${name} must be a whole number from 0 to ${max}, not ${JSON.stringify(text)}.`)
}

/** @throws CarpoolError `bad-request` */
export function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  if ((choices as readonly string[]).includes(text)) return text as T
  throw badParameter(`The parameter ${name} must be ${choices.join(' or ')}, not ${JSON.stringify(text)}.`)
}

function badParameter(detail: string): CarpoolError {
  return new CarpoolError('bad-request', detail)
}
