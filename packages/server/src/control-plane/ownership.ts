import { checkOwnerName, isAdmin } from '@carpool/access'
import { CarpoolError } from '@carpool/core'
import { functionNotFound, type Registry } from '@carpool/registry'
import type { ControlRequest } from './operation.ts'
import { OWNER, readQuery } from './parameters.ts'

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
  const owner = ownerFilter(request, readQuery({ owner: OWNER }, request.query).owner) ?? request.principal.owner
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
