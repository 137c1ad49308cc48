/**
 * `crypto.subtle`, and what `node:crypto` is made of, by native functions. Nothing of the bill or the limits depends on it, so it
 * uses the language as it finds it.
 */
import { CryptoKey } from './crypto/subtle/crypto-key.ts'
import { subtle, SubtleCrypto } from './crypto/subtle/subtle.ts'
import { asInterfaces } from './interfaces.ts'

export { makeNodeModule } from './crypto/node/index.ts'
export { CryptoKey, subtle, SubtleCrypto }

asInterfaces({ CryptoKey, SubtleCrypto })
