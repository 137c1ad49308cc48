import { CarpoolError } from '@carpool/core'

/** Largest value, in bytes of UTF-8. */
export const MAX_SECRET_BYTES = 64 * 1024
/** Most secrets of one function. */
export const MAX_SECRETS = 100
/** Longest key. */
export const MAX_KEY_LENGTH = 256

const KEY = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Checks the key of a secret: the rule is that of environment variables. @throws CarpoolError `bad-request` */
export function checkSecretKey(key: string): string {
  // It would be no property but the prototype of many an object that it comes to stand in.
  if (KEY.test(key) && key.length <= MAX_KEY_LENGTH && key !== '__proto__') return key
  const shown = key.length > 80 ? `${key.slice(0, 80)}…` : key
  throw new CarpoolError(
    'bad-request',
    `${JSON.stringify(shown)} is no key of a secret: use 1 to ${MAX_KEY_LENGTH} of A-Z, a-z, 0-9 and "_", with no digit at the beginning.`,
  )
}

/** @throws CarpoolError `bad-request`, `body-too-large`; neither holds anything of the value */
export function checkSecretValue(value: string): string {
  if (value === '') throw new CarpoolError('bad-request', 'The value of a secret may not be empty.')
  if (!value.isWellFormed())
    throw new CarpoolError('bad-request', 'The value of a secret must be text: it has half a surrogate pair in it.')
  const bytes = Buffer.byteLength(value)
  if (bytes <= MAX_SECRET_BYTES) return value
  throw new CarpoolError(
    'body-too-large',
    `The value of a secret has at most ${MAX_SECRET_BYTES} bytes, and this one has ${bytes}.`,
  )
}
