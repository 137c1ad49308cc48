import { createHash, randomBytes } from 'node:crypto'

/** 256 bits: nobody guesses that, so the hash at rest needs neither salt nor many rounds. */
const SECRET_BYTES = 32
const ID_BYTES = 8
const TOKEN = /^cpt_([0-9a-f]{16})_[\w-]{43}$/
const TOKEN_BEGINNING = /cpt_[0-9a-f]{16}_/i
const TOKEN_ID = /^[0-9a-f]{16}$/

/** Makes a token of the form `cpt_<id>_<secret>`. The id is no secret; the rest is never kept. */
export function generateToken(): { readonly id: string; readonly token: string } {
  const id = randomBytes(ID_BYTES).toString('hex')
  return { id, token: `cpt_${id}_${randomBytes(SECRET_BYTES).toString('base64url')}` }
}

/** The id in a token; undefined if the text has not the form of one. */
export function tokenIdOf(text: string): string | undefined {
  return TOKEN.exec(text)?.[1]
}

/** Whether a token, or the beginning of one, stands in a text. */
export function holdsToken(text: string): boolean {
  return TOKEN_BEGINNING.test(text)
}

export function isTokenId(text: string): boolean {
  return TOKEN_ID.test(text)
}

/** What is kept of a token: SHA-256. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
