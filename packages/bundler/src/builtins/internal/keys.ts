/** What the checks and comparisons of `node:util` and `node:assert` ask of keys. */

interface KeyObject {
  readonly type: string
  equals(other: KeyObject): boolean
}

interface KeyObjectClass {
  readonly prototype: KeyObject
  from(key: CryptoKey): KeyObject
}

/** Of `node:crypto`, if the bundle has it: without it there are no such keys. */
let Known: KeyObjectClass | undefined

export function learnKeyObject(given: KeyObjectClass): void {
  Known = given
}

const tagOf = (value: unknown): string => Object.prototype.toString.call(value)

/** Whether a getter of the class works on a value. */
function hasBrand(prototype: object, value: unknown): boolean {
  try {
    Reflect.get(prototype, 'type', value)
    return true
  } catch {
    return false
  }
}

const isKeyObject = (value: unknown): value is KeyObject => Known !== undefined && hasBrand(Known.prototype, value)
// The class is only loaded for what says that it is one.
const isCryptoKey = (value: unknown): value is CryptoKey =>
  tagOf(value) === '[object CryptoKey]' && hasBrand(CryptoKey.prototype, value)

interface KeyHandle {
  readonly key: unknown
  equals(other: KeyHandle): boolean
}

const getKeyObjectHandle = (key: KeyObject): KeyHandle => ({ key, equals: (other) => key.equals(other.key as KeyObject) })
const getCryptoKeyHandle = (key: CryptoKey): KeyHandle =>
  Known === undefined ? { key, equals: (other) => other.key === key } : getKeyObjectHandle(Known.from(key))

export default {
  isKeyObject,
  isCryptoKey,
  getKeyObjectHandle,
  getKeyObjectType: (key: KeyObject) => key.type,
  getCryptoKeyHandle,
  getCryptoKeyType: (key: CryptoKey) => key.type,
  getCryptoKeyExtractable: (key: CryptoKey) => key.extractable,
  getCryptoKeyAlgorithm: (key: CryptoKey) => key.algorithm,
  getCryptoKeyUsagesMask: (key: CryptoKey) => key.usages.join(),
  getCryptoKeySecondaryHandle: () => undefined,
  getCryptoKeySeedData: () => undefined,
}
