import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import { openFileSync } from '@carpool/storage'

const TOKEN_BYTES = 32
/** Those bytes in base64url, and longer ones that an operator chose: what may stand behind "Bearer" (RFC 6750, section 2.1). */
const TOKEN = /^[\w.~+/-]{43,256}={0,2}$/
/** A larger file holds something else. */
const MAX_FILE_BYTES = 4_096

/**
 * The operator's token, from the file of the data folder that only the server's user can read. It is made when there is none, or
 * an empty file: a server ended before it had written it.
 * @throws CarpoolError `data-unusable` if the file cannot be read, others can read it, or what is in it is no token; an error of
 * the system if none can be written
 */
export function loadAdminToken(dataDir: string): string {
  const path = join(dataDir, 'admin-token')
  const token = read(path)
  if (token === '') return make(path)
  if (TOKEN.test(token)) return token
  throw unusable(path, 'holds no token of 43 to 256 of the characters A-Z, a-z, 0-9 and "-._~+/"')
}

/** What is in the file; empty if there is none. */
function read(path: string): string {
  let file: number
  try {
    file = openFileSync(path)
  } catch (cause) {
    if (cause instanceof CarpoolError) throw unusable(path, 'is no file with a token', cause)
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return ''
    throw unusable(path, `cannot be read (${code})`, cause)
  }
  try {
    const stats = fstatSync(file)
    if (stats.size > MAX_FILE_BYTES) throw unusable(path, 'is no file with a token')
    const text = readFileSync(file, 'utf8').trim()
    if (text !== '' && (stats.mode & 0o077) !== 0) {
      const mode = (stats.mode & 0o777).toString(8).padStart(3, '0')
      throw unusable(path, `can be used by others than its owner: its mode is ${mode}, and must be 600`)
    }
    return text
  } finally {
    closeSync(file)
  }
}

function make(path: string): string {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const unfinished = `${path}.tmp`
  // What a server left that was killed may have another mode.
  rmSync(unfinished, { force: true })
  writeFileSync(unfinished, `${token}\n`, { mode: 0o600, flag: 'wx', flush: true })
  renameSync(unfinished, path)
  return token
}

function unusable(path: string, what: string, cause?: unknown): CarpoolError {
  const file = `The file ${path}, which should hold the operator's token, ${what}.`
  return new CarpoolError('data-unusable', `${file} Mend it, or delete it: then the next start makes a new one.`, { cause })
}
