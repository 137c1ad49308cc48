import { checkFunctionName, type DeployRequest, type DisableRequest, type FunctionInfo, type Revision } from '@carpool/core'
import { DEPLOY_REQUEST, DISABLE_REQUEST, FUNCTION_INFO } from '@carpool/core/control-plane-schemas'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { actingOwner, ownerFilter, requireFunction } from './ownership.ts'
import { OWNER, readQuery } from './parameters.ts'
import { FUNCTION_LIST } from './schemas.ts'

const URL = '/v1/functions/:name'
const INFO = { status: 200, description: 'The function with its live revision.', schema: FUNCTION_INFO } as const
const NO_CONTENT = { status: 204, description: 'It is done.' } as const

const DEPLOY: Operation = {
  id: 'deployFunction',
  method: 'POST',
  url: `${URL}/revisions`,
  summary: 'Deploy new code: it is tried out, warmed up, and then it answers.',
  scope: 'deploy',
  isChange: true,
  query: { owner: OWNER },
  body: DEPLOY_REQUEST,
  response: { ...INFO, status: 201 },
  errors: [
    ...(['invalid-name', 'invalid-config', 'name-taken', 'bundle-empty', 'bundle-too-large'] as const),
    ...(['load-failed', 'no-handler', 'no-host', 'draining', 'data-unusable'] as const),
  ],
}
const LIST: Operation = {
  id: 'listFunctions',
  method: 'GET',
  url: '/v1/functions',
  summary: 'The functions of the owner, by name; for admins all.',
  scope: 'read',
  query: { owner: OWNER },
  response: { status: 200, description: 'The functions with their live revisions.', schema: FUNCTION_LIST },
  errors: ['invalid-name'],
}
const GET: Operation = {
  id: 'getFunction',
  method: 'GET',
  url: URL,
  summary: 'One function.',
  scope: 'read',
  response: INFO,
  errors: ['not-found', 'data-unusable'],
}
const DELETE: Operation = {
  id: 'deleteFunction',
  method: 'DELETE',
  url: URL,
  summary: 'Take a function out of service, with its revisions, its log and its secrets.',
  scope: 'deploy',
  isChange: true,
  response: NO_CONTENT,
  errors: ['not-found', 'data-unusable'],
}
const ENABLE: Operation = {
  id: 'enableFunction',
  method: 'POST',
  url: `${URL}/enable`,
  summary: 'Take the calls of a function again that was disabled.',
  scope: 'admin',
  isChange: true,
  response: NO_CONTENT,
  errors: ['not-found', 'data-unusable'],
}
const DISABLE: Operation = {
  id: 'disableFunction',
  method: 'POST',
  url: `${URL}/disable`,
  summary: 'Refuse the calls of a function until it is enabled.',
  scope: 'admin',
  isChange: true,
  body: DISABLE_REQUEST,
  response: NO_CONTENT,
  errors: ['not-found', 'data-unusable'],
}

/** A deploy carries a source map, which is larger than the code, and both grow when they are quoted in JSON. */
const BODY_BYTES_PER_BUNDLE_BYTE = 8
const MIN_DEPLOY_BODY_BYTES = 1024 * 1024

/** Largest body of a deploy, in bytes. */
export function deployBodyLimit({ maxBundleBytes }: Pick<ControlPlaneOptions, 'maxBundleBytes'>): number {
  return Math.max(maxBundleBytes * BODY_BYTES_PER_BUNDLE_BYTE, MIN_DEPLOY_BODY_BYTES)
}

/** Deploy, list, show, delete, enable and disable functions. */
export function functionRoutes(app: FastifyInstance, parts: ControlPlaneOptions): void {
  const { access, registry, deployer } = parts

  addOperation<DeployRequest>(app, { ...DEPLOY, bodyLimitBytes: deployBodyLimit(parts) }, async (request) => {
    const name = checkFunctionName(request.params['name'] ?? '')
    const owner = actingOwner(request)
    request.audit.isForeign = isForeign(registry.ownerOf(name), owner)
    return functionInfo(parts, await deployer.deploy(name, owner, request.body))
  })

  addOperation(app, LIST, (request) => {
    const owner = ownerFilter(request, readQuery({ owner: OWNER }, request.query).owner)
    const revisions = registry.list().filter((revision) => owner === undefined || revision.owner === owner)
    return { functions: revisions.map((revision) => functionInfo(parts, revision)) }
  })

  addOperation(app, GET, (request) => {
    const name = request.params['name'] ?? ''
    requireFunction(request, registry, name)
    return functionInfo(parts, registry.route(name))
  })

  addOperation(app, DELETE, async (request) => {
    const name = request.params['name'] ?? ''
    const { owner } = request.principal
    // What a deletion has left that failed half way.
    const isLeftOver = registry.ownerOf(name) === undefined && access.secrets.list({ owner, functionName: name }).length > 0
    await deployer.remove(name, isLeftOver ? owner : requireFunction(request, registry, name))
  })

  addOperation(app, ENABLE, (request) => {
    const name = request.params['name'] ?? ''
    // Also of a function that was deleted, whose name stays disabled.
    deployer.enable(name)
    request.audit.owner = registry.ownerOf(name) ?? request.principal.owner
  })

  addOperation<DisableRequest>(app, DISABLE, (request) => {
    const name = request.params['name'] ?? ''
    requireFunction(request, registry, name)
    const { reason = 'an operator disabled it' } = request.body
    request.audit.note = reason
    deployer.disable(name, reason)
  })
}

/** Whether a name belongs to somebody else. */
function isForeign(owner: string | undefined, actingFor: string): boolean {
  return owner !== undefined && owner !== actingFor
}

type Parts = Pick<ControlPlaneOptions, 'registry' | 'meter' | 'url' | 'isQuarantined'>

/** A function as the control plane shows it, by its live revision. */
function functionInfo({ registry, meter, url, isQuarantined }: Parts, revision: Revision): FunctionInfo {
  const { functionName: name, owner, id, form, createdAt, codeBytes, limits } = revision
  const disabled = registry.disabledInfo(name)
  return {
    name,
    owner,
    state: disabled !== undefined ? 'disabled' : isQuarantined(name) ? 'quarantined' : 'active',
    ...(disabled !== undefined && { reason: disabled.reason }),
    revision: id,
    form,
    url: `${url()}/${name}/`,
    deployedAt: createdAt,
    codeBytes,
    limits,
    ...meter.countsOf(revision),
  }
}
