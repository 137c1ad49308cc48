import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
export const KEY_BYTES = 32
/** The first byte of what is sealed: how it is made. */
const FORMAT = 1
/** As NIST SP 800-38D has it for random ones: safe for 2^32 texts of one key. */
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts a text with AES-256-GCM: `format | nonce | tag | ciphertext`.
 * @param context what the text belongs to; it can be unsealed with the same context only
 */
export function seal(key: Uint8Array, text: string, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context))
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), ciphertext])
}

/** @throws Error if the key, the context or the sealed text is another one */
export function unseal(key: Uint8Array, sealed: Uint8Array, context: string): string {
  const buffer = Buffer.from(sealed)
  if (buffer[0] !== FORMAT || buffer.length < 1 + NONCE_BYTES + TAG_BYTES) throw new Error('This is nothing that was sealed.')
  const nonce = buffer.subarray(1, 1 + NONCE_BYTES)
  const tag = buffer.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context)).setAuthTag(tag)
  return Buffer.concat([decipher.update(buffer.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8')
}
