import { isOk, type Caller } from '../lib/caller.ts'

/**
 * What a call found: `host-cold` a host process that was just started, `never-called` and `evicted` no isolate of the function.
 */
export type StartKind = 'host-cold' | 'never-called' | 'evicted' | 'warm'

export interface Sample {
  readonly kind: StartKind
  readonly durationMs: number
}

/**
 * Makes one call and checks that it found what it is a sample of: only a new isolate answers 1.
 * @throws Error if the call failed, or found something else
 */
export async function sample(caller: Caller, url: string, kind: StartKind): Promise<Sample> {
  const result = await caller.call(url)
  if (!isOk(result)) throw new Error(`${kind}: ${result.error ?? `status ${result.status}: ${result.body}`}`)
  const isNew = result.body === '1'
  if (isNew === (kind === 'warm')) {
    throw new Error(`${kind}: the isolate was ${isNew ? 'new' : 'not new'}, it has answered ${result.body} calls.`)
  }
  return { kind, durationMs: result.durationMs }
}
