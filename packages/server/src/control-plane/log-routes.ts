import { Readable } from 'node:stream'
import type { LogLine } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane.ts'
import { LOGS_QUERY } from './schemas.ts'

interface LogsQuery {
  Querystring: { function?: string; limit: number; follow: boolean }
}

/** How far a slow reader of `follow` may be behind, in bytes, before it misses lines. */
const MAX_BEHIND_BYTES = 1024 * 1024

/** Read and follow the logs of functions, as NDJSON. */
export function logRoutes(app: FastifyInstance, { registry, logs }: ControlPlaneOptions): void {
  app.get<LogsQuery>('/v1/logs', { schema: { querystring: LOGS_QUERY } }, async (request, reply) => {
    const { function: functionName, limit, follow } = request.query
    if (functionName !== undefined) registry.route(functionName)
    const selection = functionName === undefined ? {} : { functionName }
    reply.type('application/x-ndjson')
    if (!follow) return (await logs.tail({ ...selection, limit })).map(toText).join('')

    const stream = new Readable({ read: () => {} })
    const push = (line: LogLine): void => {
      if (stream.readableLength < MAX_BEHIND_BYTES) stream.push(toText(line))
    }
    let listener = (line: LogLine): void => void early.push(line)
    const early: LogLine[] = []
    stream.once(
      'close',
      logs.follow(selection, (line) => listener(line)),
    )
    // Begun in the turn in which the following began, so that no line is missed and none comes twice.
    const past = await logs.tail({ ...selection, limit })
    for (const line of [...past, ...early]) push(line)
    listener = push
    return reply.send(stream)
  })
}

function toText(line: LogLine): string {
  return `${JSON.stringify(line)}\n`
}
