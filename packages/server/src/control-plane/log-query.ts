import { CarpoolError } from '@carpool/core'

export interface LogQuery {
  /** Absent: all functions. */
  readonly functionName?: string
  /** Most lines of the past. */
  readonly limit: number
  readonly follow: boolean
}

const KEYS = ['function', 'limit', 'follow']
const MAX_LIMIT = 10_000
const DEFAULT_LIMIT = 100

/** Reads the query string of `/v1/logs`. @throws CarpoolError `bad-request`, naming the parameter */
export function parseLogQuery(query: Readonly<Record<string, unknown>>): LogQuery {
  for (const [key, value] of Object.entries(query)) {
    if (!KEYS.includes(key)) throw refusal(`There is no parameter ${JSON.stringify(key)}: there are ${KEYS.join(', ')}.`)
    if (typeof value !== 'string') throw refusal(`The parameter ${key} may be given only once.`)
  }
  const { function: functionName, limit = String(DEFAULT_LIMIT), follow = 'false' } = query as Record<string, string>
  if (!/^\d{1,5}$/.test(limit) || Number(limit) > MAX_LIMIT) {
    throw refusal(`The parameter limit must be a whole number from 0 to ${MAX_LIMIT}, not ${JSON.stringify(limit)}.`)
  }
  if (follow !== 'true' && follow !== 'false') {
    throw refusal(`The parameter follow must be true or false, not ${JSON.stringify(follow)}.`)
  }
  return { limit: Number(limit), follow: follow === 'true', ...(functionName !== undefined && { functionName }) }
}

function refusal(detail: string): CarpoolError {
  return new CarpoolError('bad-request', detail)
}
