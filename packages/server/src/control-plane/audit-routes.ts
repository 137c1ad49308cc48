import type { AuditPage } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { readQuery, wholeNumber } from './query-string.ts'
import { AUDIT_PAGE } from './response-schemas.ts'

const MAX_LIMIT = 1_000
const DEFAULT_LIMIT = 50

const READ: Operation = {
  id: 'readAudit',
  method: 'GET',
  url: '/v1/audit',
  summary: 'The newest entries of the audit log: each change, and each access that was refused.',
  scope: 'admin',
  query: { limit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_LIMIT, default: DEFAULT_LIMIT })) },
  response: { status: 200, description: 'The entries, the newest last.', schema: AUDIT_PAGE },
}

/** Read the audit log. */
export function auditRoutes(app: FastifyInstance, { audit }: ControlPlaneOptions): void {
  addOperation(app, READ, async (request): Promise<AuditPage> => {
    const { limit = String(DEFAULT_LIMIT) } = readQuery(request.query, ['limit'])
    const entries = await audit.newest(wholeNumber('limit', limit, MAX_LIMIT))
    return { entries, lostEntries: audit.lostEntries }
  })
}
