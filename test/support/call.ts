import { AwaitedCall, resolveLimits, type CallInit, type FunctionLimits, type Revision } from '@carpool/core'

export interface CallOptions extends Partial<CallInit> {
  readonly method?: string
  readonly owner?: string
  readonly limits?: Partial<FunctionLimits>
}

let lastId = 0

/** A call that was routed, as it is in the middle of its way. */
export function routedCall(
  functionName: string,
  { method = 'GET', owner = 'o', limits = {}, ...init }: CallOptions = {},
): AwaitedCall & { revision: Revision } {
  const head = { method, url: 'http://localhost/', headers: [], clientIp: '::1' }
  const id = `call-${++lastId}`
  const call = new AwaitedCall({ id, functionName, trigger: 'http', head, hops: 0, startedAtMs: 0, cameMs: 0, ...init })
  call.ended.catch(() => {})
  const revision: Revision = {
    id: functionName,
    functionName,
    owner,
    form: 'fetch',
    createdAt: '',
    codeBytes: 1,
    codeHash: '',
    limits: resolveLimits(limits),
    env: {},
  }
  return Object.assign(call, { revision })
}
