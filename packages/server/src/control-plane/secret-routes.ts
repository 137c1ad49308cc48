import { isAdmin, MAX_SECRET_BYTES } from '@carpool/access'
import { CarpoolError, checkFunctionName, type SecretRequest, type SetSecretInfo } from '@carpool/core'
import { SECRET_REQUEST, SET_SECRET_INFO } from '@carpool/core/control-plane-schemas'
import { functionNotFound } from '@carpool/registry'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type ControlRequest, type Operation } from './operation.ts'
import { actingOwner } from './ownership.ts'
import { OWNER } from './parameters.ts'
import { SECRET_LIST } from './schemas.ts'

const URL = '/v1/functions/:name/secrets'
/** JSON may have six bytes for one, and there is something around the value. */
const BODY_LIMIT_BYTES = MAX_SECRET_BYTES * 6 + 1024

const LIST: Operation = {
  id: 'listSecrets',
  method: 'GET',
  url: URL,
  summary: 'The keys of the secrets of a function. Values are never told.',
  scope: 'read',
  query: { owner: OWNER },
  response: { status: 200, description: 'Keys and times, by key.', schema: SECRET_LIST },
  errors: ['invalid-name', 'not-found', 'data-unusable'],
}
const SET: Operation = {
  id: 'setSecret',
  method: 'PUT',
  url: `${URL}/:key`,
  summary: 'Set a secret. If the function is deployed, a new revision of the same code takes its place.',
  scope: 'deploy',
  isChange: true,
  query: { owner: OWNER },
  body: SECRET_REQUEST,
  bodyLimitBytes: BODY_LIMIT_BYTES,
  response: { status: 200, description: 'It is set, and calls that come get it.', schema: SET_SECRET_INFO },
  errors: [
    ...(['invalid-name', 'invalid-config', 'name-taken', 'load-failed', 'no-handler'] as const),
    ...(['no-host', 'draining', 'data-unusable'] as const),
  ],
}
const DELETE: Operation = {
  id: 'deleteSecret',
  method: 'DELETE',
  url: `${URL}/:key`,
  summary: 'Delete a secret. If the function is deployed, a new revision of the same code takes its place.',
  scope: 'deploy',
  isChange: true,
  query: { owner: OWNER },
  response: { status: 204, description: 'It is deleted, and calls that come do not get it.' },
  errors: [
    'invalid-name',
    'not-found',
    'secret-not-found',
    'load-failed',
    'no-handler',
    'no-host',
    'saturated',
    'draining',
    'data-unusable',
  ],
}

/** List, set and delete the secrets of functions, also of those that are not deployed yet. */
export function secretRoutes(app: FastifyInstance, { access, registry, deployer }: ControlPlaneOptions): void {
  const { secrets } = access

  /** Whose secrets of this name a request is about. */
  const holderOf = (request: ControlRequest): { owner: string; functionName: string } => {
    const functionName = request.params['name'] ?? ''
    const given = actingOwner(request)
    const functionOwner = registry.ownerOf(functionName)
    const owner = isAdmin(request.principal) ? (functionOwner ?? given) : given
    request.audit.owner = owner
    request.audit.isForeign = functionOwner !== undefined && functionOwner !== owner
    return { owner, functionName }
  }
  /** The same of a function that the owner has, or has secrets for. @throws CarpoolError `not-found` */
  const knownHolderOf = (request: ControlRequest): ReturnType<typeof holderOf> => {
    const holder = holderOf(request)
    const isOwn = registry.ownerOf(holder.functionName) === holder.owner
    if (!isOwn && secrets.list(holder).length === 0) throw functionNotFound(holder.functionName)
    request.audit.isForeign = false
    return holder
  }

  addOperation(app, LIST, (request) => ({ secrets: secrets.list(knownHolderOf(request)) }))

  addOperation<SecretRequest>(app, SET, async (request): Promise<SetSecretInfo> => {
    const key = request.params['key'] ?? ''
    const holder = holderOf(request)
    checkFunctionName(holder.functionName)
    const revision = await deployer.setSecret(holder, key, request.body.value)
    const info = secrets.list(holder).find((secret) => secret.key === key)
    // A deploy or a deletion that came right behind.
    if (info === undefined) throw new CarpoolError('secret-not-found', 'It was deleted again.')
    return { ...info, ...(revision !== undefined && { revision: revision.id }) }
  })

  addOperation(app, DELETE, async (request) => {
    await deployer.deleteSecret(knownHolderOf(request), request.params['key'] ?? '')
  })
}
