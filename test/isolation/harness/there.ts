import { resolveLimits } from '@carpool/core'
import { openRegistry } from '@carpool/registry'
import { scriptOf } from './compose.ts'
import { NO_MAP } from './control.ts'
import { FORM } from './form.ts'
import type { IsolationCase } from './isolation-case.ts'

const MAX_BUNDLE_BYTES = 10_000_000

/** The function of a case. */
export function nameOf({ id }: Pick<IsolationCase, 'id'>): string {
  return `case-${id.toLowerCase()}`
}

/**
 * Puts the functions of cases into the data folder of a server that is yet to start, which finds them as after a restart. For
 * each deploy a server starts a process that tries the code, at half a second of a core: the short form leaves that to the cases
 * that are refused, to those that are bundled, and to those that deploy by themselves.
 * @param env of all of them
 * @returns the names of those that are there
 */
export async function putThere(
  dataDir: string,
  cases: readonly IsolationCase[],
  env: Readonly<Record<string, string>>,
): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  if (FORM.hasVariants) return names
  const registry = openRegistry(dataDir, { codeCacheKey: 'none', maxBundleBytes: MAX_BUNDLE_BYTES })
  for (const one of cases) {
    if (one.isDeployed === true || one.refused !== undefined || one.files !== undefined || one.skip !== undefined) continue
    const code = scriptOf(one)
    // Its address is known when the server has started.
    if (code.includes('env.SELF')) continue
    const functionName = nameOf(one)
    const config = { limits: resolveLimits(one.limits ?? {}), env: { ...env, ...one.env } }
    const staged = await registry.stage({ functionName, owner: 'default', code, sourceMap: NO_MAP, config })
    await registry.publish(staged, { form: 'fetch' })
    names.add(functionName)
  }
  registry.close()
  return names
}
