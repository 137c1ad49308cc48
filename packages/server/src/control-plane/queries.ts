import { checkOwnerName, isAdmin } from '@carpool/access'
import { CarpoolError } from '@carpool/core'
import { functionNotFound, type Registry } from '@carpool/registry'
import type { ControlRequest } from './operation.ts'

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

/**
 * Whose things the answer may show; undefined: everybody's. An admin may name one.
 * @param given the parameter `owner` of the query string
 * @throws CarpoolError `forbidden`, `invalid-name`
 */
export function ownerFilter(request: ControlRequest, given: string | undefined): string | undefined {
  const { principal } = request
  if (isAdmin(principal)) return given === undefined ? undefined : checkOwnerName(given)
  if (given !== undefined && given !== principal.owner) {
    throw new CarpoolError(
      'forbidden',
      `Only a token with the scope "admin" may name another owner; this one is of ${principal.owner}.`,
    )
  }
  return principal.owner
}

/**
 * For whom something is done: for the owner of the token, unless an admin names one.
 * @throws CarpoolError `forbidden`, `invalid-name`
 */
export function actingOwner(request: ControlRequest): string {
  const owner = ownerFilter(request, readQuery(request.query, ['owner']).owner) ?? request.principal.owner
  request.audit.owner = owner
  return owner
}

/**
 * The owner of a function that the caller may see.
 * @throws CarpoolError `not-found`; the same, also in its text, if it is somebody else's
 */
export function requireFunction(request: ControlRequest, registry: Registry, name: string): string {
  const { principal, audit } = request
  const owner = registry.ownerOf(name)
  if (owner !== undefined && (isAdmin(principal) || owner === principal.owner)) {
    audit.owner = owner
    return owner
  }
  if (owner !== undefined) {
    audit.isForeign = true
    // Where the address does not say it; it is a name that there is.
    if (request.params['name'] === undefined) audit.subject = name
  }
  throw functionNotFound(name)
}
