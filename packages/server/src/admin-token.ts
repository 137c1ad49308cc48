import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const TOKEN_BYTES = 32

/** The control plane's token: kept in the data folder, readable by the server's user alone; made when there is none. */
export function loadAdminToken(dataDir: string): string {
  const path = join(dataDir, 'admin-token')
  try {
    const token = readFileSync(path, 'utf8').trim()
    if (token !== '') return token
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
  }
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  writeFileSync(path, `${token}\n`, { mode: 0o600 })
  return token
}
