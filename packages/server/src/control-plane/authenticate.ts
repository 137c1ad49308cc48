import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { DEFAULT_OWNER, holdsToken, OPERATOR, type FailedAttempts, type Principal, type TokenStore } from '@carpool/access'
import { CarpoolError } from '@carpool/core'
import { checkAuthority, groupOf } from '@carpool/gateway'
import type { FastifyReply, FastifyRequest } from 'fastify'

interface AuthenticationParts {
  /** The token of the data folder, for the operator of this machine. */
  readonly operatorToken: string
  readonly tokens: TokenStore
  /** Requests without a valid token, by the address they come from. */
  readonly attempts: FailedAttempts
}

/** @throws CarpoolError `unauthorized`, `bad-request` */
export type Authenticate = (request: FastifyRequest, reply: FastifyReply) => Principal

const OPERATOR_PRINCIPAL: Principal = { tokenId: OPERATOR, owner: DEFAULT_OWNER, scopes: new Set(['admin']) }
/** A token that stands in a URL is in histories and in the logs of whatever is on the way. */
const TOKEN_IN_URL = /[?&](?:access_?|api_?|auth_?)?(?:token|key|authorization)=/i

/**
 * Makes what finds out who sends a request. When one address has sent too many without a valid token, the next ones get a
 * `retry-after` and no entry in the audit log. A valid token is let in all the same, as tokens cannot be guessed: else one
 * program could shut out another one of the machine.
 */
export function createAuthenticate({ operatorToken, tokens, attempts }: AuthenticationParts): Authenticate {
  const operatorDigest = digest(operatorToken)
  return (request, reply) => {
    try {
      checkOrigin(request)
      if (TOKEN_IN_URL.test(request.url) || holdsToken(request.url)) {
        throw new CarpoolError('unauthorized', 'A token is sent in the header "authorization", never in the URL.')
      }
      const token = bearerToken(request.headers.authorization)
      // Digests have one length, and the time of the comparison does not depend on where they differ.
      return timingSafeEqual(digest(token), operatorDigest) ? OPERATOR_PRINCIPAL : tokens.authenticate(token)
    } catch (cause) {
      const source = sourceOf(request.ip)
      const attempt = attempts.add(source)
      if (attempt === 'last') request.audit.note = 'The next ones from this address are left out for a while.'
      if (attempt !== 'too-many') throw cause
      request.audit.isLeftOut = true
      const waitSeconds = Math.ceil(attempts.waitMs(source) / 1000)
      reply.header('retry-after', waitSeconds)
      const detail = `Too many requests without a valid token came from this address; wait ${waitSeconds} s.`
      throw new CarpoolError('unauthorized', detail, { cause })
    }
  }
}

/**
 * Whose an address is; it is not known any more of who has left. A program of this machine may take any of the millions of IPv4's
 * loopback.
 */
function sourceOf(address = ''): string {
  const group = groupOf(address)
  return group.startsWith('127.') ? '127.0.0.0/8' : group
}

function bearerToken(authorization = ''): string {
  const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization) ?? []
  if (token !== undefined) return token
  throw new CarpoolError(
    'unauthorized',
    'Send a token as "authorization: Bearer <token>". The operator\'s is in the file admin-token of the data folder; "carpool token create" makes others.',
  )
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/**
 * Refuses what a web page may have made a browser send. Any page can have requests sent here, but not without an `Origin` or as a
 * mere navigation, nor under another `Host` than the one of the page: so `Host` must be an address or `localhost`, which no name
 * that somebody lets point here is (DNS rebinding). There may be one alone, and a target that is a whole URL must name the same:
 * else what stands in front could have gone by the other.
 * @throws CarpoolError `unauthorized`, `bad-request`
 */
function checkOrigin({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): void {
  if (headers.origin !== undefined) {
    throw new CarpoolError('unauthorized', 'The control plane takes no requests from web pages.')
  }
  const { host: [host = '', ...others] = [] } = raw.headersDistinct
  if (!isOwnHost(host)) {
    throw new CarpoolError('unauthorized', 'The control plane is addressed by IP address or as localhost.')
  }
  if (others.length > 0) throw new CarpoolError('bad-request', 'A request may have one Host header, not more.')
  checkAuthority(raw)
}

/**
 * The same where no token is needed; without an entry in the audit log, which a page could fill.
 * @throws CarpoolError `unauthorized`, `bad-request`
 */
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
