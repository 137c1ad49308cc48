import { isIP } from 'node:net'
import { CarpoolError } from '@carpool/core'
import type { FastifyRequest } from 'fastify'

/**
 * Refuses what a web page may have made a browser send. Any page can have requests sent here, but not without an `Origin` or as a mere
 * navigation, nor under another `Host` than the one of the page: so `Host` must be an address or `localhost`, which no name that somebody
 * lets point here is (DNS rebinding).
 * @throws CarpoolError `unauthorized`
 */
export function checkOrigin({ headers }: Pick<FastifyRequest, 'headers'>): void {
  if (headers.origin !== undefined) {
    throw new CarpoolError('unauthorized', 'The control plane takes no requests from web pages.')
  }
  if (!isOwnHost(headers.host ?? '')) {
    throw new CarpoolError('unauthorized', 'The control plane is addressed by IP address or as localhost.')
  }
}

/** The same where no token is needed, and where the audit log need not tell of it: a page could fill it. @throws CarpoolError `unauthorized` */
export function refuseWebPages(request: FastifyRequest): void {
  request.audit.isLeftOut = true
  checkOrigin(request)
}

function isOwnHost(host: string): boolean {
  const [, ipv6, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(host) ?? []
  if (ipv6 !== undefined) return isIP(ipv6) === 6
  // With a dot at its end a name is absolute.
  return isIP(name) === 4 || /^localhost\.?$/i.test(name)
}
