import { oneOf, readQuery, wholeNumber } from './query-string.ts'

export interface LogQuery {
  /** Absent: all functions. */
  readonly functionName?: string
  /** Of functions of this owner. Absent: as the token allows. */
  readonly owner?: string
  /** Most lines of the past. */
  readonly limit: number
  readonly follow: boolean
}

export const MAX_LOG_LIMIT = 10_000
export const DEFAULT_LOG_LIMIT = 100

/** Reads the query string of `/v1/logs`. @throws CarpoolError `bad-request`, naming the parameter */
export function parseLogQuery(query: Readonly<Record<string, unknown>>): LogQuery {
  const given = readQuery(query, ['function', 'owner', 'limit', 'follow'])
  return {
    limit: wholeNumber('limit', given.limit ?? String(DEFAULT_LOG_LIMIT), MAX_LOG_LIMIT),
    follow: oneOf('follow', given.follow ?? 'false', ['true', 'false']) === 'true',
    ...(given.function !== undefined && { functionName: given.function }),
    ...(given.owner !== undefined && { owner: given.owner }),
  }
}
