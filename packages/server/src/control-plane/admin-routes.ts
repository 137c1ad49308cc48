import { isTokenId } from '@carpool/access'
import { CarpoolError, type AuditPage, type TokenRequest } from '@carpool/core'
import { AUDIT_PAGE, CREATED_TOKEN, TOKEN_REQUEST } from '@carpool/core/control-plane-schemas'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { limitParameter, readQuery } from './parameters.ts'
import { TOKEN_LIST } from './schemas.ts'

const CREATE: Operation = {
  id: 'createToken',
  method: 'POST',
  url: '/v1/tokens',
  summary: 'Make a token for an owner. The answer is the only time that it is shown.',
  scope: 'admin',
  isChange: true,
  body: TOKEN_REQUEST,
  response: { status: 201, description: 'The token.', schema: CREATED_TOKEN },
  errors: ['invalid-name', 'data-unusable'],
}
const LIST: Operation = {
  id: 'listTokens',
  method: 'GET',
  url: '/v1/tokens',
  summary: 'The tokens, without what makes them tokens.',
  scope: 'admin',
  response: { status: 200, description: 'The tokens, the oldest first.', schema: TOKEN_LIST },
}
const REVOKE: Operation = {
  id: 'revokeToken',
  method: 'DELETE',
  url: '/v1/tokens/:id',
  summary: 'Make a token worthless at once.',
  scope: 'admin',
  isChange: true,
  response: { status: 204, description: 'It is revoked.' },
  errors: ['token-not-found', 'data-unusable'],
}

/** Make, list and revoke tokens. */
export function tokenRoutes(app: FastifyInstance, { access: { tokens } }: ControlPlaneOptions): void {
  addOperation<TokenRequest>(app, CREATE, (request) => {
    const created = tokens.create(request.body)
    request.audit.subject = created.id
    request.audit.owner = created.owner
    return created
  })

  addOperation(app, LIST, () => ({ tokens: tokens.list() }))

  addOperation(app, REVOKE, (request) => {
    const id = request.params['id'] ?? ''
    if (!isTokenId(id)) throw new CarpoolError('token-not-found', 'There is no token of this id.')
    const owner = tokens.find(id)?.owner
    if (owner !== undefined) request.audit.owner = owner
    tokens.revoke(id)
  })
}

const AUDIT_QUERY = { limit: limitParameter(1_000, 50) }

const READ: Operation = {
  id: 'readAudit',
  method: 'GET',
  url: '/v1/audit',
  summary: 'The newest entries of the audit log: each change, and each access that was refused.',
  scope: 'admin',
  query: AUDIT_QUERY,
  response: { status: 200, description: 'The entries, the newest last.', schema: AUDIT_PAGE },
  errors: ['data-unusable'],
}

/** Read the audit log. */
export function auditRoutes(app: FastifyInstance, { audit }: ControlPlaneOptions): void {
  addOperation(app, READ, async (request): Promise<AuditPage> => {
    const { limit } = readQuery(AUDIT_QUERY, request.query)
    const entries = await audit.newest(limit)
    return { entries, lostEntries: audit.lostEntries }
  })
}
