/** Something that OpenSSL keeps; it goes when nothing refers to it any more. */
export interface Handle {
  readonly isHandle: never
}

/**
 * What `host/native` gives. What takes long goes on for a while with each call, and is called again until it is done: between two
 * calls the isolate can be suspended or ended.
 */
export interface Natives {
  hashNew(name: string, key: Uint8Array | undefined): Handle | undefined
  /** @returns bytes of the result, and those of a block times 2^16 */
  hashInfo(name: string): number | undefined
  /** @returns where it stopped */
  hashUpdate(hash: Handle, bytes: Uint8Array, at: number): number
  hashDigest(hash: Handle, size?: number): ArrayBuffer
  hashCopy(hash: Handle): Handle
  /** @returns how often it did */
  hmacIterate(hmac: Handle, last: Uint8Array, sum: Uint8Array, count: number): number
  mixNew(block: Uint8Array, n: number, r: number): Handle
  /** @returns whether it is done */
  mixStep(mix: Handle): boolean
  mixResult(mix: Handle): ArrayBuffer
  equal(one: Uint8Array, other: Uint8Array): boolean
  cipherInfo(
    name: string,
  ):
    | readonly [mode: number, keyBytes: number, ivBytes: number, blockBytes: number, nid: number, isAuthenticated: boolean]
    | undefined
  cipherNew(name: string, encrypts: boolean, key: Uint8Array, iv: Uint8Array, tagBytes?: number): Handle | undefined
  cipherPadding(cipher: Handle, pads: boolean): void
  cipherSetTag(cipher: Handle, tag: Uint8Array): boolean
  /** @returns where it stopped */
  cipherAad(cipher: Handle, bytes: Uint8Array, at: number): number
  /** @returns how many bytes it wrote */
  /** @returns the most that a call of `cipherUpdate` takes, in bytes */
  cipherSlice(cipher: Handle): number
  cipherUpdate(cipher: Handle, bytes: Uint8Array, at: number, size: number, output: Uint8Array, outputAt: number): number
  cipherFinal(cipher: Handle): ArrayBuffer
  cipherTag(cipher: Handle): ArrayBuffer
  /** @returns undefined for what is no key, or of a kind or size that there is not */
  keyRead(der: Uint8Array, isPrivate: boolean): Handle | undefined
  keyWrite(key: Handle, isPrivate: boolean): ArrayBuffer
  keyIsWhole(key: Handle): boolean
  keyGenerate(kind: string, sizeOrCurve?: number | string, exponent?: number): Handle
  sign(key: Handle, digest: string | undefined, data: Uint8Array, padding?: number, salt?: number, mask?: string): ArrayBuffer
  verify(
    key: Handle,
    digest: string | undefined,
    data: Uint8Array,
    padding: number | undefined,
    salt: number | undefined,
    mask: string | undefined,
    signature: Uint8Array,
  ): boolean
  convert(how: number, key: Handle, data: Uint8Array, padding: number, digest?: string, label?: Uint8Array): ArrayBuffer
  derive(key: Handle, peer: Handle): ArrayBuffer
}

/** Given to the script of the library; see bundle.ts. */
declare const NATIVES: Natives

export const natives = NATIVES

/** The room that a call of `cipherUpdate` needs beyond what it takes, in bytes. */
export const CIPHER_ROOM = 32

/** How `convert` does it. */
export const CONVERSIONS = { publicEncrypt: 0, privateDecrypt: 1, privateEncrypt: 2, publicDecrypt: 3 } as const
