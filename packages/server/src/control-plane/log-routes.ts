import { Readable } from 'node:stream'
import { OPERATOR, type Principal } from '@carpool/access'
import { CarpoolError, execUs, jsonLine, type InvocationRecord, type LogLine } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import { Type } from '@carpool/core/schema'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { ownerFilter, requireFunction } from './ownership.ts'
import { defined, flagParameter, limitParameter, OWNER, readQuery, textParameter } from './parameters.ts'

/** How far a slow reader of `follow` may be behind, in bytes, before it misses lines. */
const MAX_BEHIND_BYTES = 1024 * 1024
/** How many lines may come while the past is read; later ones are missed. */
const MAX_EARLY_LINES = 10_000

const QUERY = {
  function: textParameter({ description: 'Default: all of the owner, for admins all.' }),
  owner: OWNER,
  limit: limitParameter(10_000, 100),
  follow: flagParameter('Go on with what is logged from now on.'),
}
const READ: Operation = {
  id: 'readLogs',
  method: 'GET',
  url: '/v1/logs',
  summary: 'Read and follow the logs of functions: what they wrote, and the report of each invocation.',
  scope: 'read',
  query: QUERY,
  response: {
    status: 200,
    description: 'One JSON document for each line.',
    schema: Type.String(),
    contentType: 'application/x-ndjson',
  },
  errors: ['invalid-name', 'not-found', 'data-unusable', 'draining'],
}

/** What a reader of logs may see. */
interface Selection {
  /** Absent: all functions. */
  readonly functionName?: string
  /** Absent: all owners. */
  readonly owner?: string
  /** Most lines of the past. */
  readonly limit: number
}

/** Read and follow the logs of functions, as NDJSON: what they wrote, and the report of each invocation from the ledger. */
export function logRoutes(app: FastifyInstance, parts: ControlPlaneOptions): void {
  addOperation(app, READ, async (request, reply) => {
    const { function: functionName, owner, limit, follow } = readQuery(QUERY, request.query)
    const selection = { limit, ...defined({ functionName, owner: ownerFilter(request, owner) }) }
    if (functionName !== undefined) requireFunction(request, parts.registry, functionName)
    if (follow) {
      const stream = await followed(parts, selection, request.principal)
      // Fastify ends what it has begun to send. A HEAD takes nothing of it, and a client may have left by now.
      reply.raw.once('close', () => stream.destroy())
      if (reply.raw.destroyed) stream.destroy()
      // Else it would go out with the first line, which may be long in coming.
      reply.raw.once('pipe', () => reply.raw.flushHeaders())
      return stream
    }
    return (await newest(parts, selection)).map(jsonLine).join('')
  })
}

/** The newest lines, by time. */
async function newest({ registry, logs, ledger }: ControlPlaneOptions, selection: Selection): Promise<LogLine[]> {
  const { limit, functionName, owner } = selection
  const query = { limit, ...defined({ functionName }) }
  // Both begin in this turn.
  const [written, records] = await Promise.all([
    logs.tail({ ...query, ...ofOwner(registry, owner) }),
    limit === 0 ? [] : ledger.invocations({ ...query, ...defined({ owner }) }),
  ])
  const reports = records.filter((record) => isOfLiveFunction(registry, record)).map(reportLine)
  // A line comes before the report of the same millisecond, for the sort is stable.
  return [...written, ...reports.toReversed()].toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0)).slice(-limit)
}

/** The lines of the past and all that come after, until the stream is closed, or the token is not valid any more. */
async function followed(parts: ControlPlaneOptions, selection: Selection, principal: Principal): Promise<Readable> {
  const { registry, logs, ledger, access } = parts
  const { functionName, owner } = selection
  const stream = new Readable({ read: () => {} })
  const push = (line: LogLine): void => {
    if (!isStillValid(access, principal)) stream.destroy()
    else if (stream.readableLength < MAX_BEHIND_BYTES) stream.push(jsonLine(line))
  }
  const early: LogLine[] = []
  let listener = (line: LogLine): void => {
    if (early.length < MAX_EARLY_LINES) early.push(line)
  }
  const unfollowers = [
    logs.follow({ ...defined({ functionName }), ...ofOwner(registry, owner) }, (line) => listener(line)),
    ledger.follow((record) => {
      if (functionName !== undefined && functionName !== record.functionName) return
      if (owner !== undefined && owner !== record.owner) return
      if (isOfLiveFunction(registry, record)) listener(reportLine(record))
    }),
    access.tokens.onRevoke((id) => {
      if (id === principal.tokenId) stream.destroy()
    }),
  ]
  const unfollow = (): void => {
    for (const each of unfollowers) each()
  }
  stream.once('close', unfollow)
  try {
    const past = await newest(parts, selection)
    // A report that came meanwhile may have been read with the past as well.
    const seen = new Set(past.filter(isReport).map(({ invocationId }) => invocationId))
    for (const line of past) push(line)
    for (const line of early) if (!isReport(line) || !seen.has(line.invocationId)) push(line)
    listener = push
    if (stream.destroyed) throw new CarpoolError('unauthorized', 'The token was revoked or has expired meanwhile.')
    return stream
  } catch (cause) {
    unfollow()
    stream.destroy()
    throw cause
  }
}

/** Lines of functions that the owner has at the time. */
function ofOwner(registry: ControlPlaneOptions['registry'], owner: string | undefined) {
  return owner === undefined ? {} : { includes: (name: string) => registry.ownerOf(name) === owner }
}

/** Not if the function was deleted, even if the name has come to somebody else. */
function isOfLiveFunction(registry: ControlPlaneOptions['registry'], { functionName, owner }: InvocationRecord): boolean {
  return registry.ownerOf(functionName) === owner
}

function isStillValid({ tokens }: ControlPlaneOptions['access'], principal: Principal): boolean {
  return principal.tokenId === OPERATOR || tokens.isValid(principal.tokenId)
}

function isReport({ stream, msg }: LogLine): boolean {
  return stream === 'carpool' && msg.startsWith('report: ')
}

/** What an invocation came to, as one line of its function's log; made from the ledger when the log is read. */
function reportLine(record: InvocationRecord): LogLine {
  const { id, functionName, revision, outcome, error, status, start, wallUs, cpuUs, queueUs, initUs, memoryMb, memoryPeakKb } =
    record
  const how = outcome === 'refused' ? `refused, ${error}` : outcome
  const parts = [
    `${how} ${status} in ${milliseconds(wallUs)}`,
    `exec ${milliseconds(execUs(record))}`,
    `billed ${Math.ceil(execUs(record) / 1000)} ms`,
    `cpu ${milliseconds(cpuUs)}`,
    `queue ${milliseconds(queueUs)}`,
    `init ${milliseconds(initUs)}`,
    `memory ${memoryMb} MiB, peak ${Math.ceil(memoryPeakKb / 1024)} MiB`,
    start,
  ]
  return {
    time: new Date(record.startedAtMs + wallUs / 1000).toISOString(),
    level: 'info',
    stream: 'carpool',
    function: functionName,
    revision,
    invocationId: id,
    msg: `report: ${parts.join('; ')}`,
  }
}

function milliseconds(us: number): string {
  return `${(us / 1000).toFixed(us < 100_000 ? 2 : 0)} ms`
}
