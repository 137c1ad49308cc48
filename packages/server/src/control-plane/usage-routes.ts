import { USAGE_GROUPS, type InvocationQuery, type UsageQuery } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import { Type } from '@carpool/core/schema'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { oneOf, ownerFilter, readQuery, wholeNumber } from './queries.ts'
import { INVOCATION_RECORDS, OWNER_PARAMETER, USAGE_ROWS } from './schemas.ts'

const MAX_INVOCATIONS = 1_000
const DEFAULT_INVOCATIONS = 20
const BOOLEANS = ['true', 'false'] as const

const COMMON_QUERY = {
  function: Type.Optional(Type.String()),
  owner: OWNER_PARAMETER,
  since: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'In ms of the epoch.' })),
}
const ERRORS = ['invalid-name', 'data-unusable', 'draining'] as const

const READ_USAGE: Operation = {
  id: 'readUsage',
  method: 'GET',
  url: '/v1/usage',
  summary: 'What was used: totals by function, owner or hour.',
  scope: 'read',
  query: {
    by: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: USAGE_GROUPS, default: 'function' })),
    ...COMMON_QUERY,
  },
  response: { status: 200, description: 'A row for each that has anything.', schema: USAGE_ROWS },
  errors: ERRORS,
}
const READ_INVOCATIONS: Operation = {
  id: 'readInvocations',
  method: 'GET',
  url: '/v1/invocations',
  summary: 'Records of single invocations.',
  scope: 'read',
  query: {
    failed: Type.Optional(
      Type.Boolean({ default: false, description: 'Only those whose outcome was not ok, and refused ones.' }),
    ),
    slow: Type.Optional(Type.Boolean({ default: false, description: 'The slowest first; else the newest.' })),
    limit: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_INVOCATIONS, default: DEFAULT_INVOCATIONS })),
    ...COMMON_QUERY,
  },
  response: { status: 200, description: 'The records.', schema: INVOCATION_RECORDS },
  errors: ERRORS,
}

/** Read what was used: sums, and single invocations. Functions that were deleted are still in both, for who owned them then. */
export function usageRoutes(app: FastifyInstance, { ledger }: ControlPlaneOptions): void {
  addOperation(app, READ_USAGE, async (request) => {
    const { owner, ...query } = parseUsageQuery(request.query)
    return { rows: await ledger.usage({ ...query, ...own(ownerFilter(request, owner)) }) }
  })
  addOperation(app, READ_INVOCATIONS, async (request) => {
    const { owner, ...query } = parseInvocationQuery(request.query)
    return { invocations: await ledger.invocations({ ...query, ...own(ownerFilter(request, owner)) }) }
  })
}

function own(owner: string | undefined): { owner?: string } {
  return owner === undefined ? {} : { owner }
}

function parseUsageQuery(query: Record<string, unknown>): UsageQuery {
  const { by = 'function', ...rest } = readQuery(query, ['by', 'since', 'function', 'owner'])
  return { by: oneOf('by', by, USAGE_GROUPS), ...parseCommon(rest) }
}

function parseInvocationQuery(query: Record<string, unknown>): InvocationQuery {
  const {
    failed = 'false',
    slow = 'false',
    limit = String(DEFAULT_INVOCATIONS),
    ...rest
  } = readQuery(query, ['function', 'owner', 'since', 'failed', 'slow', 'limit'])
  return {
    failed: oneOf('failed', failed, BOOLEANS) === 'true',
    slow: oneOf('slow', slow, BOOLEANS) === 'true',
    limit: wholeNumber('limit', limit, MAX_INVOCATIONS),
    ...parseCommon(rest),
  }
}

function parseCommon(
  given: Partial<Record<'since' | 'function' | 'owner', string>>,
): Pick<UsageQuery, 'sinceMs' | 'functionName' | 'owner'> {
  return {
    ...(given.since !== undefined && { sinceMs: wholeNumber('since', given.since, Number.MAX_SAFE_INTEGER) }),
    ...(given.function !== undefined && { functionName: given.function }),
    ...(given.owner !== undefined && { owner: given.owner }),
  }
}
