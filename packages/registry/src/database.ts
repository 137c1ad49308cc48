import type { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'
import { openForWriting, resultCode } from '@carpool/storage'
import { MIGRATIONS } from './schema.ts'

const STORE = {
  name: 'registry',
  file: 'registry.sqlite',
  damaged: 'The registry database in the data folder is damaged; restore it from a copy.',
}

/**
 * Opens the database and locks it for this process: routes live in memory, so a second server on the same folder would answer with old
 * code and delete new bundles.
 * @throws CarpoolError `data-unusable` if it is damaged, in use by another server, or written by a newer Carpool
 */
export function openDatabase(path: string): DatabaseSync {
  try {
    return openForWriting(path, {
      store: STORE,
      migrations: MIGRATIONS,
      busyTimeoutMs: 0,
      synchronous: 'FULL',
      isExclusive: true,
    })
  } catch (cause) {
    throw explain(cause)
  }
}

function explain(cause: unknown): unknown {
  switch (resultCode(cause)) {
    case 'busy':
      return new CarpoolError('data-unusable', 'The data folder is in use by another Carpool server.', { cause })
    case 'corrupt':
    case 'not-a-database':
      return new CarpoolError('data-unusable', STORE.damaged, { cause })
    default:
      return cause
  }
}
