import { type Bytes, concat, uint32 } from '../node/bytes.ts'
import { type Handle, natives } from './natives.ts'

/** Lengths of a digest, in bytes; undefined if there is no such digest. */
export function digestSizes(name: string): { readonly size: number; readonly block: number } | undefined {
  const info = natives.hashInfo(name)
  return info === undefined ? undefined : { size: info & 0xffff, block: info >> 16 }
}

export function feed(hash: Handle, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at = natives.hashUpdate(hash, bytes, at)
}

/** Of a digest that is known. */
export function digest(name: string, ...parts: readonly Uint8Array[]): Bytes {
  const hash = natives.hashNew(name, undefined)!
  for (const part of parts) feed(hash, part)
  return new Uint8Array(natives.hashDigest(hash))
}

/** Of a digest that is known. */
export function newHmac(name: string, key: Uint8Array): Handle {
  const { block } = digestSizes(name)!
  return natives.hashNew(name, key.length > block ? digest(name, key) : key)!
}

export function hmac(name: string, key: Uint8Array, ...parts: readonly Uint8Array[]): Bytes {
  const hash = newHmac(name, key)
  for (const part of parts) feed(hash, part)
  return new Uint8Array(natives.hashDigest(hash))
}

/** RFC 8018, section 5.2. */
export function pbkdf2(name: string, password: Uint8Array, salt: Uint8Array, iterations: number, size: number): Bytes {
  const keyed = newHmac(name, password)
  const result = new Uint8Array(size)
  for (let at = 0, block = 1; at < size; block++) {
    const first = natives.hashCopy(keyed)
    feed(first, salt)
    feed(first, uint32(block))
    const last = new Uint8Array(natives.hashDigest(first))
    const sum = last.slice()
    for (let left = iterations - 1; left > 0; ) left -= natives.hmacIterate(keyed, last, sum, min(left, 2 ** 31))
    const part = sum.subarray(0, min(sum.length, size - at))
    result.set(part, at)
    at += part.length
  }
  return result
}

/** RFC 5869. The size is at most 255 digests. */
export function hkdf(name: string, key: Uint8Array, salt: Uint8Array, info: Uint8Array, size: number): Bytes {
  const keyed = newHmac(name, hmac(name, salt, key))
  const result = new Uint8Array(size)
  let last: Bytes = new Uint8Array(0)
  for (let at = 0, block = 1; at < size; block++) {
    const round = natives.hashCopy(keyed)
    feed(round, concat(last, info, Uint8Array.of(block)))
    last = new Uint8Array(natives.hashDigest(round))
    const part = last.subarray(0, min(last.length, size - at))
    result.set(part, at)
    at += part.length
  }
  return result
}

export interface ScryptCost {
  readonly n: number
  readonly r: number
  readonly p: number
}

/** RFC 7914, section 6. */
export function scrypt(password: Uint8Array, salt: Uint8Array, { n, r, p }: ScryptCost, size: number): Bytes {
  const blockBytes = 128 * r
  const blocks = pbkdf2('SHA256', password, salt, 1, p * blockBytes)
  for (let at = 0; at < blocks.length; at += blockBytes) {
    const mix = natives.mixNew(blocks.subarray(at, at + blockBytes), n, r)
    while (!natives.mixStep(mix));
    blocks.set(new Uint8Array(natives.mixResult(mix)), at)
  }
  return pbkdf2('SHA256', password, blocks, 1, size)
}

const { min } = Math
