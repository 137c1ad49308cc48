import { USAGE_GROUPS, type InvocationQuery, type UsageQuery } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane.ts'
import { oneOf, readQuery, wholeNumber } from './query-string.ts'

interface Queried {
  Querystring: Record<string, unknown>
}

const MAX_INVOCATIONS = 1_000
const DEFAULT_INVOCATIONS = 20
const BOOLEANS = ['true', 'false'] as const

/** Read what was used: sums, and single invocations. Functions that were deleted are still in both. */
export function usageRoutes(app: FastifyInstance, { ledger }: ControlPlaneOptions): void {
  app.get<Queried>('/v1/usage', async ({ query }) => ({ rows: await ledger.usage(parseUsageQuery(query)) }))
  app.get<Queried>('/v1/invocations', async ({ query }) => ({
    invocations: await ledger.invocations(parseInvocationQuery(query)),
  }))
}

function parseUsageQuery(query: Record<string, unknown>): UsageQuery {
  const { by = 'function', ...rest } = readQuery(query, ['by', 'since', 'function'])
  return { by: oneOf('by', by, USAGE_GROUPS), ...parseCommon(rest) }
}

function parseInvocationQuery(query: Record<string, unknown>): InvocationQuery {
  const {
    failed = 'false',
    slow = 'false',
    limit = String(DEFAULT_INVOCATIONS),
    ...rest
  } = readQuery(query, ['function', 'since', 'failed', 'slow', 'limit'])
  return {
    failed: oneOf('failed', failed, BOOLEANS) === 'true',
    slow: oneOf('slow', slow, BOOLEANS) === 'true',
    limit: wholeNumber('limit', limit, MAX_INVOCATIONS),
    ...parseCommon(rest),
  }
}

function parseCommon(given: Partial<Record<'since' | 'function', string>>): { sinceMs?: number; functionName?: string } {
  return {
    ...(given.since !== undefined && { sinceMs: wholeNumber('since', given.since, Number.MAX_SAFE_INTEGER) }),
    ...(given.function !== undefined && { functionName: given.function }),
  }
}
