import type { AsymmetricKey } from './asymmetric-key.ts'
import { type Bytes, concat, padZeroes, trimZeroes } from '../node/bytes.ts'
import { integer, readSequence, sequence } from './der.ts'

/** An ECDSA signature in the form of IEEE P1363, two numbers of the same length, from DER. */
export function plainFromDer(key: AsymmetricKey, der: Bytes): Bytes {
  const { size } = key.facts.curve!
  const [r, s] = readSequence(der)
  return concat(padZeroes(r!.content, size), padZeroes(s!.content, size))
}

/** The other way round; undefined if it has another length. */
export function derFromPlain(key: AsymmetricKey, plain: Bytes): Bytes | undefined {
  const { size } = key.facts.curve!
  if (plain.length !== 2 * size) return undefined
  return sequence(integer(trimZeroes(plain.subarray(0, size))), integer(trimZeroes(plain.subarray(size))))
}

export const PADDINGS = { pkcs1: 1, none: 3, oaep: 4, pss: 6 } as const
