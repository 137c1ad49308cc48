import { Readable } from 'node:stream'
import type { InvocationRecord, LogLine } from '@carpool/core'
import type { TailQuery } from '@carpool/function-logs'
import type { FastifyInstance } from 'fastify'
import { reportLine } from '../report-line.ts'
import type { ControlPlaneOptions } from './control-plane.ts'
import { parseLogQuery } from './log-query.ts'

/** How far a slow reader of `follow` may be behind, in bytes, before it misses lines. */
const MAX_BEHIND_BYTES = 1024 * 1024
/** How many lines may come while the past is read; later ones are missed. */
const MAX_EARLY_LINES = 10_000

/** Read and follow the logs of functions, as NDJSON: what they wrote, and the report of each invocation from the ledger. */
export function logRoutes(app: FastifyInstance, parts: ControlPlaneOptions): void {
  app.get<{ Querystring: Record<string, unknown> }>('/v1/logs', async (request, reply) => {
    const { follow, ...query } = parseLogQuery(request.query)
    if (query.functionName !== undefined) parts.registry.route(query.functionName)
    const answer = follow ? await followed(parts, query) : (await newest(parts, query)).map(toText).join('')
    return reply.type('application/x-ndjson').send(answer)
  })
}

/** The newest lines, by time. */
async function newest({ registry, logs, ledger }: ControlPlaneOptions, query: TailQuery): Promise<LogLine[]> {
  // Both begin in this turn.
  const [written, records] = await Promise.all([logs.tail(query), query.limit === 0 ? [] : ledger.invocations(query)])
  const reports = records.filter(({ functionName }) => registry.find(functionName) !== undefined).map(reportLine)
  // A line comes before the report of the same millisecond, for the sort is stable.
  return [...written, ...reports.toReversed()]
    .toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0))
    .slice(-query.limit)
}

/** The lines of the past and all that come after, until the stream is closed. */
async function followed(parts: ControlPlaneOptions, query: TailQuery): Promise<Readable> {
  const { logs, ledger } = parts
  const stream = new Readable({ read: () => {} })
  const push = (line: LogLine): void => {
    if (stream.readableLength < MAX_BEHIND_BYTES) stream.push(toText(line))
  }
  const early: LogLine[] = []
  let listener = (line: LogLine): void => {
    if (early.length < MAX_EARLY_LINES) early.push(line)
  }
  const unfollowLogs = logs.follow(query, (line) => listener(line))
  const unfollowLedger = ledger.follow((record) => {
    if (concerns(record, query)) listener(reportLine(record))
  })
  const unfollow = (): void => {
    unfollowLogs()
    unfollowLedger()
  }
  stream.once('close', unfollow)
  try {
    const past = await newest(parts, query)
    // A report that came meanwhile may have been read with the past as well.
    const seen = new Set(past.filter(isReport).map(({ invocationId }) => invocationId))
    for (const line of past) push(line)
    for (const line of early) if (!isReport(line) || !seen.has(line.invocationId)) push(line)
    listener = push
    return stream
  } catch (cause) {
    unfollow()
    stream.destroy()
    throw cause
  }
}

function concerns(record: InvocationRecord, { functionName }: TailQuery): boolean {
  return functionName === undefined || functionName === record.functionName
}

function isReport({ stream, msg }: LogLine): boolean {
  return stream === 'carpool' && msg.startsWith('report: ')
}

function toText(line: LogLine): string {
  return `${JSON.stringify(line)}\n`
}
