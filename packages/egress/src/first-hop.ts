import type { FetchHead } from '@carpool/core'
import { refusal } from './failure.ts'
import { fetchTarget } from './fetch-target.ts'
import { requestHeaders } from './header-policy.ts'
import type { EgressLimits } from './limits.ts'
import type { Hop } from './redirect.ts'

const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])
const NORMALISED_METHODS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'])

/**
 * The request with which a fetch begins.
 * @throws refusal if it must not be made
 */
export function firstHop({ method, url, headers }: FetchHead, body: Uint8Array, { maxRequestBytes }: EgressLimits): Hop {
  if (body.length > maxRequestBytes) {
    throw refusal(`The request body has ${body.length} bytes; the limit is ${maxRequestBytes}.`)
  }
  const target = fetchTarget(url)
  const upper = method.toUpperCase()
  if (FORBIDDEN_METHODS.has(upper)) throw refusal(`The method ${upper} cannot be used.`)
  const hasBody = body.length > 0
  if (hasBody && (upper === 'GET' || upper === 'HEAD')) throw refusal(`A ${upper} request cannot have a body.`)
  return {
    url: target,
    method: NORMALISED_METHODS.has(upper) ? upper : method,
    headers: requestHeaders(headers),
    body: hasBody ? body : null,
  }
}
