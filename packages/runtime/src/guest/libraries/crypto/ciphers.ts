import { type Bytes, concat, NO_BYTES } from '../node/bytes.ts'
import { CIPHER_ROOM, type Handle, natives } from './natives.ts'

/** What a cipher gives for more of its text. */
export function updateCipher(cipher: Handle, bytes: Uint8Array): Bytes {
  const output = new Uint8Array(bytes.length + CIPHER_ROOM)
  const slice = natives.cipherSlice(cipher)
  let written = 0
  for (let at = 0; at < bytes.length; at += slice) {
    const size = Math.min(bytes.length - at, slice)
    written += natives.cipherUpdate(cipher, bytes, at, size, output, written)
  }
  return output.subarray(0, written)
}

export function authenticate(cipher: Handle, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at = natives.cipherAad(cipher, bytes, at)
}

interface Once {
  readonly name: string
  readonly key: Uint8Array
  readonly iv: Uint8Array
  readonly data: Uint8Array
}

/** Encrypts or decrypts a whole text. @throws Error if it cannot be decrypted */
export function runCipher(encrypts: boolean, { name, key, iv, data }: Once): Bytes {
  const cipher = natives.cipherNew(name, encrypts, key, iv)!
  const text = updateCipher(cipher, data)
  return concat(text, new Uint8Array(natives.cipherFinal(cipher)))
}

interface Authenticated extends Once {
  readonly aad?: Uint8Array | undefined
  readonly tagBytes: number
}

/** Encrypts a whole text, and puts the tag behind it. */
export function seal({ name, key, iv, data, aad = NO_BYTES, tagBytes }: Authenticated): Bytes {
  const cipher = natives.cipherNew(name, true, key, iv, tagBytes)!
  authenticate(cipher, aad)
  const text = updateCipher(cipher, data)
  const rest = new Uint8Array(natives.cipherFinal(cipher))
  return concat(text, rest, new Uint8Array(natives.cipherTag(cipher)))
}

/** Undoes that. @throws Error if it is not what was encrypted */
export function unseal({ name, key, iv, data, aad = NO_BYTES, tagBytes }: Authenticated): Bytes {
  const cipher = natives.cipherNew(name, false, key, iv, tagBytes)!
  const end = data.length - tagBytes
  if (end < 0 || !natives.cipherSetTag(cipher, data.subarray(end))) throw new Error('There is no tag.')
  authenticate(cipher, aad)
  const text = updateCipher(cipher, data.subarray(0, end))
  return concat(text, new Uint8Array(natives.cipherFinal(cipher)))
}
