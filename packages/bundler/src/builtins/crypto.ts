import { learnKeyObject } from './internal/keys.ts'
import { refuse } from './refuse.ts'
import { nodeModuleOf } from './runtime-module.ts'

const crypto = nodeModuleOf('crypto') as { readonly KeyObject: Parameters<typeof learnKeyObject>[0] }
learnKeyObject(crypto.KeyObject)

const WHY = 'the runtime has none'
const MISSING = [
  'argon2',
  'argon2Sync',
  'Certificate',
  'checkPrime',
  'checkPrimeSync',
  'createDiffieHellman',
  'createDiffieHellmanGroup',
  'createMac',
  'decapsulate',
  'DiffieHellman',
  'DiffieHellmanGroup',
  'encapsulate',
  'generatePrime',
  'generatePrimeSync',
  'getDiffieHellman',
  'getMacs',
  'parsePKCS12',
  'randomUUIDv7',
  'secureHeapUsed',
  'setEngine',
  'setFips',
  'X509Certificate',
]

/** `node:crypto` in a function. What is missing of it throws where it is used. */
export default { ...refuse('crypto', WHY, MISSING), ...crypto }
