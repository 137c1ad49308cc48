import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { CarpoolError } from '@carpool/core'
import { openFileSync } from '@carpool/storage'

const BASE64_KEY = /^[A-Za-z0-9+/]{43}=$/

/** The key of the secrets, in a file of its own as base64. */
export class SecretKey {
  readonly path: string
  #key: Buffer | undefined

  constructor(path: string) {
    this.path = path
  }

  /** @throws Error if there is no such file, with the code ENOENT also if it is empty; or if what is in it is no key */
  read(): Buffer {
    if (this.#key !== undefined) return this.#key
    const text = readText(this.path).trim()
    if (text === '') throw Object.assign(new Error('The file is empty.'), { code: 'ENOENT' })
    if (!BASE64_KEY.test(text)) throw new Error(`The file does not hold ${KEY_BYTES} bytes in base64.`)
    this.#key = Buffer.from(text, 'base64')
    return this.#key
  }

  /** Why it can neither be read nor be made, in words for an operator; undefined if it can. Makes nothing. */
  get fault(): string | undefined {
    const { path } = this
    try {
      this.read()
      return undefined
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException
      if (cause instanceof CarpoolError) return `${path} is no file, but a folder, a named pipe or the like.`
      if (code !== 'ENOENT') return `${path} cannot be read: ${code ?? message}`
    }
    const place = existsSync(path) ? path : dirname(path)
    try {
      accessSync(place, constants.W_OK)
      return undefined
    } catch (cause) {
      return `${path} cannot be made: ${(cause as NodeJS.ErrnoException).code} of ${place}.`
    }
  }

  /** Reads the key, and makes one if there is none. */
  readOrMake(): Buffer {
    try {
      return this.read()
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
    }
    const key = randomBytes(KEY_BYTES)
    // What is there is empty: a server ended before it had written the key.
    const file = openSync(this.path, 'w', 0o600)
    try {
      writeSync(file, `${key.toString('base64')}\n`)
      // Before anything is encrypted with it.
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    this.#key = key
    return key
  }
}

function readText(path: string): string {
  const file = openFileSync(path)
  try {
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
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
