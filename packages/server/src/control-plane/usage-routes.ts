import { USAGE_GROUPS } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { ownerFilter } from './ownership.ts'
import { choiceParameter, defined, flagParameter, limitParameter, OWNER, readQuery, SINCE, textParameter } from './parameters.ts'
import { INVOCATION_RECORDS, USAGE_ROWS } from './schemas.ts'

const USAGE_QUERY = {
  by: choiceParameter(USAGE_GROUPS, 'function'),
  since: SINCE,
  function: textParameter(),
  owner: OWNER,
}
const INVOCATIONS_QUERY = {
  function: textParameter(),
  owner: OWNER,
  since: SINCE,
  failed: flagParameter('Only those whose outcome was not ok, and refused ones.'),
  slow: flagParameter('The slowest first; else the newest.'),
  limit: limitParameter(1_000, 20),
}
const ERRORS = ['invalid-name', 'data-unusable', 'draining'] as const

const READ_USAGE: Operation = {
  id: 'readUsage',
  method: 'GET',
  url: '/v1/usage',
  summary: 'What was used: totals by function, owner or hour.',
  scope: 'read',
  query: USAGE_QUERY,
  response: { status: 200, description: 'A row for each that has anything.', schema: USAGE_ROWS },
  errors: ERRORS,
}
const READ_INVOCATIONS: Operation = {
  id: 'readInvocations',
  method: 'GET',
  url: '/v1/invocations',
  summary: 'Records of single invocations.',
  scope: 'read',
  query: INVOCATIONS_QUERY,
  response: { status: 200, description: 'The records.', schema: INVOCATION_RECORDS },
  errors: ERRORS,
}

/** Read what was used: sums, and single invocations. Functions that were deleted are still in both, for who owned them then. */
export function usageRoutes(app: FastifyInstance, { ledger }: ControlPlaneOptions): void {
  addOperation(app, READ_USAGE, async (request) => {
    const { by, since: sinceMs, function: functionName, owner } = readQuery(USAGE_QUERY, request.query)
    return { rows: await ledger.usage({ by, ...defined({ sinceMs, functionName, owner: ownerFilter(request, owner) }) }) }
  })
  addOperation(app, READ_INVOCATIONS, async (request) => {
    const { since: sinceMs, function: functionName, owner, ...rest } = readQuery(INVOCATIONS_QUERY, request.query)
    const selection = defined({ sinceMs, functionName, owner: ownerFilter(request, owner) })
    return { invocations: await ledger.invocations({ ...rest, ...selection }) }
  })
}
