import { CarpoolError, resolveLimits, type DeployRequest, type Revision } from '@carpool/core'
import { concurrencyLimit, type Fleet, type Limited } from '@carpool/fleet'
import type { Registry } from '@carpool/registry'
import { mapStack, parseSourceMap } from './source-mapper.ts'

export interface DeployParts {
  readonly registry: Registry
  readonly fleet: Fleet
}

/** Changes what names stand for, one change at a time for each name: of two deploys at once, the one that came last stays. */
export class Deployer {
  readonly #parts: DeployParts
  readonly #turns = new Map<string, Limited>()

  constructor(parts: DeployParts) {
    this.#parts = parts
  }

  /**
   * Makes new code answer to a name: stage, try out, warm up, publish. Until the last step the revision that was live goes on serving, and
   * when this resolves the next call is answered by the new one.
   * @throws CarpoolError of what is wrong with the code
   */
  deploy(functionName: string, owner: string, request: DeployRequest): Promise<Revision> {
    return this.#inTurn(functionName, () => deploy(this.#parts, functionName, owner, request))
  }

  /** Takes a function out of service, with all its revisions. @throws CarpoolError `not-found` */
  remove(functionName: string): Promise<void> {
    return this.#inTurn(functionName, async () => this.#parts.registry.remove(functionName))
  }

  async #inTurn<T>(functionName: string, change: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(functionName) ?? concurrencyLimit(1)
    this.#turns.set(functionName, turn)
    return turn(change)
  }
}

async function deploy(
  { registry, fleet }: DeployParts,
  functionName: string,
  owner: string,
  request: DeployRequest,
): Promise<Revision> {
  const { code, sourceMap, handlerExport, limits = {}, env = {} } = request
  const config = { limits: resolveLimits(limits), env, ...(handlerExport !== undefined && { handlerExport }) }
  const staged = await registry.stage({ functionName, owner, code, sourceMap, config })
  try {
    const { result, codeCache } = await fleet.tryOut(staged, code)
    if (!result.ok) throw refusal(functionName, result, sourceMap)
    await fleet.warm(staged, { source: code, ...(codeCache !== undefined && { codeCache }) })
    return await registry.publish(staged, { form: result.form, ...(codeCache !== undefined && { codeCache }) })
  } catch (cause) {
    if (registry.find(functionName)?.id !== staged.id) fleet.retire(staged.id)
    throw cause
  } finally {
    // Without effect once it is published.
    registry.discard(staged)
  }
}

function refusal(
  functionName: string,
  { code, message, stack }: { code: 'load-failed' | 'no-handler'; message: string; stack: string },
  sourceMap: string,
): CarpoolError {
  if (code === 'no-handler') return new CarpoolError(code, message)
  const map = parseSourceMap(sourceMap)
  const text = stack === '' ? message : stack
  return new CarpoolError(code, map === undefined ? message : mapStack(text, functionName, map))
}
