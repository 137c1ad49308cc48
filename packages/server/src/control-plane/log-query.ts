import { oneOf, readQuery, wholeNumber } from './query-string.ts'

export interface LogQuery {
  /** Absent: all functions. */
  readonly functionName?: string
  /** Most lines of the past. */
  readonly limit: number
  readonly follow: boolean
}

const MAX_LIMIT = 10_000
const DEFAULT_LIMIT = 100

/** Reads the query string of `/v1/logs`. @throws CarpoolError `bad-request`, naming the parameter */
export function parseLogQuery(query: Readonly<Record<string, unknown>>): LogQuery {
  const given = readQuery(query, ['function', 'limit', 'follow'])
  return {
    limit: wholeNumber('limit', given.limit ?? String(DEFAULT_LIMIT), MAX_LIMIT),
    follow: oneOf('follow', given.follow ?? 'false', ['true', 'false']) === 'true',
    ...(given.function !== undefined && { functionName: given.function }),
  }
}
