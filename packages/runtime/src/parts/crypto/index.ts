/**
 * The part `crypto`: `crypto.subtle`, and what `node:crypto` is made of. It is loaded when a function first touches either. Unlike
 * the rest of the runtime it is no border: nothing of the bill or the limits depends on it, so it uses the language as it finds it.
 */
import { connectNatives, type Natives } from './natives.ts'
import { connectRuntime, type Runtime } from './runtime.ts'
import { makeNodeModule } from './node/index.ts'
import { CryptoKey } from './subtle/crypto-key.ts'
import { subtle, SubtleCrypto } from './subtle/subtle.ts'

export function create(natives: Natives): (runtime: Runtime) => object {
  connectNatives(natives)
  return (runtime) => {
    connectRuntime(runtime)
    return { subtle, SubtleCrypto, CryptoKey, node: makeNodeModule }
  }
}
