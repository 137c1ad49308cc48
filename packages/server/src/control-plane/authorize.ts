import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { CarpoolError } from '@carpool/core'
import type { FastifyRequest } from 'fastify'

/**
 * Lets through who has the token. A browser can be made to send requests here by any page, but not with a header of that page's choice
 * nor under another `Host`, so `Origin` is refused and `Host` must be an address or `localhost`.
 * @throws CarpoolError `unauthorized`
 */
export function authorize(request: FastifyRequest, token: string): void {
  const { authorization = '', origin, host = '' } = request.headers
  if (origin !== undefined) throw new CarpoolError('unauthorized', 'The control plane takes no requests from web pages.')
  const hostName = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (hostName !== 'localhost' && isIP(hostName) === 0) {
    throw new CarpoolError('unauthorized', 'The control plane is addressed by IP address or as localhost.')
  }
  const [, given = ''] = /^Bearer (\S+)$/i.exec(authorization) ?? []
  if (!timingSafeEqual(digest(given), digest(token))) {
    throw new CarpoolError(
      'unauthorized',
      'Send the token as "authorization: Bearer <token>"; it is in the file admin-token of the data folder.',
    )
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
