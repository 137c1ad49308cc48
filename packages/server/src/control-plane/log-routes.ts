import { Readable } from 'node:stream'
import type { LogLine } from '@carpool/core'
import type { FunctionLogs, TailQuery } from '@carpool/function-logs'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane.ts'
import { parseLogQuery } from './log-query.ts'

/** How far a slow reader of `follow` may be behind, in bytes, before it misses lines. */
const MAX_BEHIND_BYTES = 1024 * 1024
/** How many lines may come while the past is read; later ones are missed. */
const MAX_EARLY_LINES = 10_000

/** Read and follow the logs of functions, as NDJSON. */
export function logRoutes(app: FastifyInstance, { registry, logs }: ControlPlaneOptions): void {
  app.get<{ Querystring: Record<string, unknown> }>('/v1/logs', async (request, reply) => {
    const { follow, ...query } = parseLogQuery(request.query)
    if (query.functionName !== undefined) registry.route(query.functionName)
    const answer = follow ? await followed(logs, query) : (await logs.tail(query)).map(toText).join('')
    return reply.type('application/x-ndjson').send(answer)
  })
}

/** The lines of the past and all that come after, until the stream is closed. */
async function followed(logs: FunctionLogs, query: TailQuery): Promise<Readable> {
  const stream = new Readable({ read: () => {} })
  const push = (line: LogLine): void => {
    if (stream.readableLength < MAX_BEHIND_BYTES) stream.push(toText(line))
  }
  const early: LogLine[] = []
  let listener = (line: LogLine): void => {
    if (early.length < MAX_EARLY_LINES) early.push(line)
  }
  const unfollow = logs.follow(query, (line) => listener(line))
  stream.once('close', unfollow)
  try {
    // Begun in the turn in which the following began, so that no line is missed and none comes twice.
    const past = await logs.tail(query)
    for (const line of past.concat(early)) push(line)
    listener = push
    return stream
  } catch (cause) {
    unfollow()
    stream.destroy()
    throw cause
  }
}

function toText(line: LogLine): string {
  return `${JSON.stringify(line)}\n`
}
