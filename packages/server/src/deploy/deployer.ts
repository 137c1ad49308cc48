import {
  createRedactor,
  type FunctionSecrets,
  type Redact,
  type SecretChange,
  type SecretHolder,
  type SecretSet,
} from '@carpool/access'
import { CarpoolError, checkEnv, resolveLimits, type DeployRequest, type Revision, type RevisionConfig } from '@carpool/core'
import { checkHostList } from '@carpool/egress'
import type { Fleet } from '@carpool/fleet'
import { functionNotFound, type Registry, type StageInput } from '@carpool/registry'
import { readSourceMap } from '../host-reports/read-source-map.ts'
import { mapStack } from '../host-reports/source-mapper.ts'
import { deployTurns } from './deploy-turns.ts'

export interface DeployParts {
  readonly registry: Registry
  readonly fleet: Fleet
  readonly secrets: FunctionSecrets
  /** The revisions of deploys under way, by id: hosts report of them before they are published. */
  readonly staged: Map<string, Pick<Revision, 'functionName' | 'owner' | 'limits' | 'egress'>>
  /** Erases what an earlier function of the name has left in its log. Default: nothing. */
  readonly eraseLog?: (functionName: string) => Promise<void>
}

/** Functions for which one owner may have secrets before they are deployed. */
const MAX_UNDEPLOYED = 100

/**
 * Changes what names stand for, one change at a time for each name: of two deploys at once, the one that came last stays. And
 * changes whether they answer.
 */
export class Deployer {
  readonly #parts: DeployParts
  readonly #inTurn = deployTurns()

  constructor(parts: DeployParts) {
    this.#parts = parts
  }

  /**
   * Makes new code answer to a name: stage, smoke test, warm up, publish. Until the last step the revision that was live goes on
   * serving, and when this resolves the next call is answered by the new one.
   * @throws CarpoolError `name-taken`; `saturated` if too many deploys wait, or the disk has no room; and what is wrong with the
   * code
   */
  async deploy(functionName: string, owner: string, request: DeployRequest & Pick<RevisionConfig, 'egress'>): Promise<Revision> {
    // What cannot come to anything does not hold up the owner of the name.
    this.#requireFree(functionName, owner)
    return this.#inTurn({ functionName, owner }, async () => {
      this.#requireFree(functionName, owner)
      const { code, sourceMap, handlerExport, limits = {}, env = {}, egress } = request
      const secrets = this.#parts.secrets.current({ owner, functionName })
      const live = this.#parts.registry.find(functionName)
      // The new revision would go without the secrets that this one has lost.
      if (live !== undefined) this.#parts.secrets.of(live)
      checkEnv(env)
      const config = {
        limits: resolveLimits(limits),
        env,
        ...(handlerExport !== undefined && { handlerExport }),
        ...(egress !== undefined && { egress: checkHostList(egress) }),
      }
      return bringUp(this.#parts, { functionName, owner, code, sourceMap, config }, secrets)
    })
  }

  /**
   * Takes a function of an owner out of service, with its revisions and secrets; of one that is not deployed, its secrets.
   * It does not wait for deploys that wait themselves: these come after it.
   * @throws CarpoolError `not-found`; `data-unusable` if the function is gone and its secrets are not: then it can be repeated
   */
  remove(functionName: string, owner: string): Promise<void> {
    return this.#inTurn({ functionName, owner, isUrgent: true }, async () => {
      const { registry, secrets } = this.#parts
      this.#requireOwn(functionName, owner)
      // First: should one of the two fail, no function is left without its secrets. Another owner never finds them.
      if (registry.ownerOf(functionName) === owner) registry.remove(functionName)
      try {
        secrets.forget({ owner, functionName })
      } catch (cause) {
        const detail = `${functionName} is deleted, but its secrets could not be. Delete it again, or its secrets.`
        throw new CarpoolError('data-unusable', detail, { cause })
      }
    })
  }

  /**
   * Sets a secret. A live function is deployed anew with it, so that calls under way keep the old value and the next one gets the
   * new one.
   * @returns the revision that has it; undefined if the function is not deployed: then the first deploy of its owner finds it
   * @throws CarpoolError `name-taken`; `bad-request` of the key and the value; `saturated` if the disk has no room; and what a
   * deploy does
   */
  async setSecret(holder: SecretHolder, key: string, value: string): Promise<Revision | undefined> {
    this.#requireFree(holder.functionName, holder.owner)
    return this.#inTurn(holder, async () => {
      const { secrets, registry } = this.#parts
      this.#requireFree(holder.functionName, holder.owner)
      const change = secrets.setting(holder, key, value)
      const current = secrets.current(holder)
      const live = registry.find(holder.functionName)
      const isSet = Object.hasOwn(current.values, key) && current.values[key] === value
      // The live revision may be without it: its secrets are lost, or the server was killed before it published the next one.
      if (isSet && (live === undefined || (live.secretsVersion ?? 0) === current.version)) return live
      registry.requireRoom()
      if (current.version === 0) this.#requireRoom(holder)
      return this.#changeSecrets(change)
    })
  }

  /** Deletes a secret; else as {@link Deployer.setSecret}. @throws CarpoolError `secret-not-found`, and what a deploy does */
  deleteSecret(holder: SecretHolder, key: string): Promise<Revision | undefined> {
    return this.#inTurn(holder, async () => {
      const { secrets, registry } = this.#parts
      const live = registry.find(holder.functionName)
      // It would go without the others that it has lost.
      if (live?.owner === holder.owner) secrets.of(live)
      const change = secrets.deleting(holder, key)
      return this.#changeSecrets(change)
    })
  }

  /**
   * Refuses the calls of a function until it is enabled, and ends what runs of it.
   * @param reason completes "it is disabled because …"
   * @throws CarpoolError `not-found`; `data-unusable` if it is in force, though not for longer than the server lives
   */
  disable(functionName: string, reason: string): void {
    const { registry, fleet } = this.#parts
    try {
      registry.disable(functionName, { reason })
    } catch (cause) {
      if (cause instanceof CarpoolError) throw cause
      const detail = `${functionName} is disabled, but only until the server ends: the disk takes nothing more.`
      throw new CarpoolError('data-unusable', `${detail} Disable it again when there is room.`, { cause })
    } finally {
      fleet.disable(functionName)
    }
  }

  /** Takes the calls of a function again that was disabled. @throws CarpoolError `not-found` */
  enable(functionName: string): void {
    const { registry, fleet } = this.#parts
    registry.enable(functionName)
    fleet.clearStrikes(functionName)
  }

  async #changeSecrets(change: SecretChange): Promise<Revision | undefined> {
    const { registry, secrets } = this.#parts
    const { holder, next } = change
    const revision = registry.find(holder.functionName)
    if (revision?.owner !== holder.owner) {
      secrets.commit(change)
      const isLeftOver = registry.ownerOf(holder.functionName) !== holder.owner && Object.keys(next.values).length === 0
      if (isLeftOver) secrets.forget(holder)
      return undefined
    }
    const { source } = await registry.code(revision)
    const { functionName, owner, limits, env, handlerExport, egress } = revision
    const config = {
      limits,
      env,
      ...(handlerExport !== undefined && { handlerExport }),
      ...(egress !== undefined && { egress }),
    }
    const input = { functionName, owner, code: source, sourceMap: await registry.sourceMap(revision), config }
    return bringUp(this.#parts, input, next, () => secrets.commit(change))
  }

  #requireFree(functionName: string, owner: string): void {
    if ((this.#parts.registry.ownerOf(functionName) ?? owner) === owner) return
    throw new CarpoolError('name-taken', `The name ${functionName} is taken by another owner; choose another name.`)
  }

  /** Of what is not deployed, secrets may be there. */
  #requireOwn(functionName: string, owner: string): void {
    const { registry, secrets } = this.#parts
    const deployedBy = registry.ownerOf(functionName)
    if (deployedBy === owner || (deployedBy === undefined && secrets.list({ owner, functionName }).length > 0)) return
    throw functionNotFound(functionName)
  }

  #requireRoom({ owner, functionName }: SecretHolder): void {
    const { registry, secrets } = this.#parts
    if (registry.ownerOf(functionName) === owner) return
    const undeployed = secrets.functionsOf(owner).filter((name) => registry.ownerOf(name) !== owner)
    if (undeployed.length < MAX_UNDEPLOYED) return
    throw new CarpoolError(
      'bad-request',
      `${owner} has secrets of ${MAX_UNDEPLOYED} functions that are not deployed, which is the limit; deploy some, or delete their secrets.`,
    )
  }
}

/**
 * Stages, smoke-tests, warms up and publishes.
 * @param onLoaded called when nothing but publishing is left; what it gives is called if that fails
 */
async function bringUp(
  { registry, fleet, staged: underWay, eraseLog }: DeployParts,
  input: Omit<StageInput, 'config'> & { readonly config: Omit<RevisionConfig, 'secretsVersion'> },
  { version, values }: SecretSet,
  onLoaded?: () => () => void,
): Promise<Revision> {
  const { functionName, code, config } = input
  refuseConflict(functionName, config.env, values)
  const staged = await registry.stage({ ...input, config: { ...config, ...(version > 0 && { secretsVersion: version }) } })
  underWay.set(staged.id, staged)
  let takeBack: (() => void) | undefined
  try {
    const { result, codeCache } = await fleet.smokeTest(staged.owner, { ...staged, env: { ...staged.env, ...values } }, code)
    if (!result.ok) throw await refusal(input, result, createRedactor(Object.entries(values)))
    const isDisabled = registry.disabledInfo(functionName)?.owner === staged.owner
    if (!isDisabled) await fleet.warm(staged, { source: code, secrets: values, ...(codeCache !== undefined && { codeCache }) })
    // A log that could not be removed with its function is not for the next owner of the name.
    if (registry.ownerOf(functionName) === undefined) await eraseLog?.(functionName)
    takeBack = onLoaded?.()
    return await registry.publish(staged, { form: result.form, ...(codeCache !== undefined && { codeCache }) })
  } catch (cause) {
    if (registry.find(functionName)?.id !== staged.id) {
      fleet.retire(staged.id)
      tryToTakeBack(takeBack)
    }
    throw cause
  } finally {
    underWay.delete(staged.id)
    // Without effect once it is published.
    registry.discard(staged)
  }
}

/** Its failure is not thrown: the first one is, and a full disk may be why both fail. New calls get the old value in any case. */
function tryToTakeBack(takeBack: (() => void) | undefined): void {
  try {
    takeBack?.()
  } catch {
    // After a restart the new value is in force, for it is on the disk.
  }
}

/** A function would get one of the two, and its author might take it for the other. @throws CarpoolError `invalid-config` */
function refuseConflict(functionName: string, env: RevisionConfig['env'], secrets: SecretSet['values']): void {
  const name = Object.keys(secrets).find((key) => Object.hasOwn(env, key))
  if (name === undefined) return
  throw new CarpoolError(
    'invalid-config',
    `${name} is a secret of ${functionName} and in the env that it is deployed with: it may be only one of them.`,
  )
}

async function refusal(
  { functionName, owner, sourceMap }: Pick<StageInput, 'functionName' | 'owner' | 'sourceMap'>,
  { code, message, stack }: { code: 'load-failed' | 'no-handler'; message: string; stack: string },
  redact: Redact,
): Promise<CarpoolError> {
  if (code === 'no-handler') return new CarpoolError(code, redact(message))
  const map = await readSourceMap(owner, () => sourceMap).catch(() => undefined)
  const text = stack === '' ? message : stack
  return new CarpoolError(code, redact(map === undefined ? message : mapStack(text, functionName, map)))
}
