import { checkSecretKey, isAdmin, isTokenId, type AuditLog, type FailedAttempts } from '@carpool/access'
import { checkFunctionName, type AuditEntry, type ErrorCode } from '@carpool/core'
import type { FastifyRequest } from 'fastify'

/** What is learned of a request for the audit log while it is handled. */
export interface RequestAudit {
  /** Whether the entry is made. */
  isEntered?: boolean
  /** The error with which it is answered. */
  error?: ErrorCode
  /** It is about something of another owner, which the answer does not show. */
  isForeign?: boolean
  /** One of too many: there is no entry of it. */
  isLeftOut?: boolean
  /** Whose thing it is, if that is not the owner of the token. */
  owner?: string
  /** What it is about, if the address does not say. */
  subject?: string
  note?: string
}

interface AuditParts {
  readonly log: AuditLog
  /** Accesses that were refused, and failed changes of owners, by the id of the token: one bearer should not fill the log. */
  readonly refusals: FailedAttempts
  /** Whether a text holds a token: then it is not written. */
  readonly holdsToken: (text: string) => boolean
  /** The time of day in ms of the epoch. */
  readonly now: () => number
}

/**
 * Makes what enters a request once its outcome is known: each change, and each access that is refused. Never a body, a query or a
 * header. A request that has an entry gets no other.
 */
export function createAudit({ log, refusals, holdsToken, now }: AuditParts): (request: FastifyRequest) => void {
  return (request) => {
    const { audit, principal, routeOptions } = request
    const operation = routeOptions.config?.operation
    if (operation === undefined || audit === undefined) return
    const isRefused = audit.error === 'unauthorized' || audit.error === 'forbidden' || audit.isForeign === true
    if (audit.isEntered || audit.isLeftOut || !(isRefused || operation.isChange)) return
    audit.isEntered = true
    const tokenId = principal?.tokenId
    if (principal !== undefined && (isRefused || (audit.error !== undefined && !isAdmin(principal)))) {
      const refusal = refusals.add(principal.tokenId)
      if (refusal === 'too-many') return
      if (refusal === 'last') audit.note = 'The next refused accesses and failed changes of this token are left out for a while.'
    }
    const subject = audit.subject ?? subjectOf(request.params as Readonly<Record<string, string>>)
    const owner = audit.owner ?? principal?.owner
    const entry: AuditEntry = {
      time: new Date(now()).toISOString(),
      action: operation.id,
      ...(subject !== undefined && !holdsToken(subject) && { subject }),
      result: audit.error ?? 'ok',
      ...(tokenId !== undefined && { tokenId }),
      ...(owner !== undefined && { owner }),
      remoteAddress: request.ip,
      ...(audit.note !== undefined && !holdsToken(audit.note) && { note: audit.note }),
    }
    log.append(entry)
  }
}

/** Only what has the form of a name: an address may hold anything, also a token that was put there by mistake. */
function subjectOf({ name, key, id }: Readonly<Record<string, string>>): string | undefined {
  if (id !== undefined) return isTokenId(id) ? id : undefined
  if (name === undefined || !isSound(() => checkFunctionName(name))) return undefined
  if (key === undefined) return name
  return isSound(() => checkSecretKey(key)) ? `${name}/${key}` : name
}

function isSound(check: () => unknown): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}
