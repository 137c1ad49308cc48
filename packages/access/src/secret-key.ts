import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { KEY_BYTES } from './seal.ts'

const BASE64_KEY = /^[A-Za-z0-9+/]{43}=$/

/** The key of the secrets, in a file of its own as base64. */
export class SecretKey {
  readonly #path: string
  #key: Buffer | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** @throws Error if there is no such file, with the code ENOENT also if it is empty; or if what is in it is no key */
  read(): Buffer {
    if (this.#key !== undefined) return this.#key
    const text = readFileSync(this.#path, 'utf8').trim()
    if (text === '') throw Object.assign(new Error('The file is empty.'), { code: 'ENOENT' })
    if (!BASE64_KEY.test(text)) throw new Error(`The file does not hold ${KEY_BYTES} bytes in base64.`)
    this.#key = Buffer.from(text, 'base64')
    return this.#key
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
    const file = openSync(this.#path, 'w', 0o600)
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
