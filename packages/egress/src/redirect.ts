import type { HeaderList } from '@carpool/core'
import { refusal } from './failure.ts'
import { fetchTarget } from './fetch-target.ts'
import { withoutBodyHeaders, withoutCredentials } from './header-policy.ts'

/** One request of a fetch; each redirect makes another. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: HeaderList
  /** Null: none. */
  readonly body: Uint8Array | null
}

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Where a response redirects to; undefined if it does not. Servers write what is beyond ASCII in UTF-8, and browsers read it so. */
export function redirectLocation(status: number, headers: HeaderList): string | undefined {
  const location = REDIRECT_STATUSES.has(status) ? headers.find(([name]) => name === 'location')?.[1] : undefined
  return location === undefined ? undefined : Buffer.from(location, 'latin1').toString()
}

/**
 * The request that a redirect asks for, by the rules of the fetch standard.
 * @throws refusal if it is not made
 */
export function redirectedHop(hop: Hop, status: number, location: string): Hop {
  const url = fetchTarget(location, hop.url)
  if (hop.url.protocol === 'https:' && url.protocol === 'http:') throw refusal('A redirect from https: to http: is not followed.')
  const becomesGet =
    (hop.method === 'POST' && (status === 301 || status === 302)) ||
    (status === 303 && hop.method !== 'GET' && hop.method !== 'HEAD')
  const headers = url.origin === hop.url.origin ? hop.headers : withoutCredentials(hop.headers)
  return becomesGet ? { url, method: 'GET', headers: withoutBodyHeaders(headers), body: null } : { ...hop, url, headers }
}
