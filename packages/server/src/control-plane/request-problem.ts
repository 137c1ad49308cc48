import { CarpoolError } from '@carpool/core'
import { errorOfFastify } from '@carpool/gateway'

/** What the schema validator says of one fault. */
interface SchemaFault {
  readonly instancePath: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

/** What the system says of a disk that takes nothing more, full or not. */
const DISK_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'EROFS'])
/** Primary result codes of SQLite for the same: readonly, I/O error, full. */
const SQLITE_DISK_CODES: ReadonlySet<number> = new Set([8, 10, 13])

/** Turns what Fastify refuses, or the disk, into an error of ours: bodies that are no JSON, among others. */
export function errorOfRequest(cause: unknown, bodyLimitBytes: number): CarpoolError {
  const { code, errcode } = cause as { code?: string; errcode?: number }
  // The higher bits of SQLite's code say more of the same.
  if (DISK_CODES.has(code ?? '') || SQLITE_DISK_CODES.has((errcode ?? 0) & 0xff)) {
    return new CarpoolError('data-unusable', 'The disk of the data folder is full, or takes nothing more; nothing was changed.', {
      cause,
    })
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new CarpoolError('bad-request', 'The body must be JSON, sent as "content-type: application/json".', { cause })
  }
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return new CarpoolError('bad-request', 'The body is empty.', { cause })
  if (code === 'FST_ERR_CTP_INVALID_JSON_BODY') return new CarpoolError('bad-request', 'The body is not valid JSON.', { cause })
  return errorOfFastify(cause, bodyLimitBytes)
}

/** Says of the first fault where it is; of a key that may not be there, which it is. */
export function describeSchemaFault([fault]: readonly SchemaFault[], part: string): Error {
  const where = part + (fault?.instancePath ?? '').replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
  const key = fault?.params['additionalProperty']
  const what = key === undefined ? (fault?.message ?? 'is not valid') : `may not have the key ${JSON.stringify(key)}`
  return new Error(`${where} ${what}.`)
}
