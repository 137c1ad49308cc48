/** The primary result codes of SQLite that Carpool tells apart, https://sqlite.org/rescode.html. */
const NAMES = {
  1: 'error',
  5: 'busy',
  8: 'read-only',
  10: 'io-error',
  11: 'corrupt',
  13: 'full',
  14: 'cannot-open',
  26: 'not-a-database',
} as const

export type ResultCode = (typeof NAMES)[keyof typeof NAMES]

/** Only the low byte is the primary code; the others say more of the same. */
const PRIMARY_MASK = 0xff

/** What SQLite failed with; undefined if the cause is no error of SQLite, or one that has no name here. */
export function resultCode(cause: unknown): ResultCode | undefined {
  if (!(cause instanceof Error) || !('errcode' in cause)) return undefined
  return (NAMES as Readonly<Record<number, ResultCode>>)[Number(cause.errcode) & PRIMARY_MASK]
}
