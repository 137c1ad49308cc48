import { requireScope, type Principal } from '@carpool/access'
import { CarpoolError, type ErrorCode, type TokenScope } from '@carpool/core'
import { errorOfFastify } from '@carpool/gateway'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { RequestAudit } from './audit.ts'
import type { Parameter } from './parameters.ts'

/** What is answered when all is well. */
export interface OperationResponse {
  readonly status: 200 | 201 | 204
  readonly description: string
  /** Absent: there is no body. */
  readonly schema?: TSchema
  /** Default: `application/json`. */
  readonly contentType?: string
}

/** One operation of the control plane: what its route does with a request, and what the OpenAPI document says of it. */
export interface Operation {
  /** Also what the audit log calls it. */
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With `:name` for a parameter. */
  readonly url: string
  readonly summary: string
  /** What the token must allow. Absent: no token is needed. */
  readonly scope?: TokenScope
  /** Whether something is changed: then each of them is in the audit log. */
  readonly isChange?: boolean
  /** Parameters of the query string, by name; the handler reads them. */
  readonly query?: Readonly<Record<string, Parameter<unknown>>>
  /** Checked before the request is handled. */
  readonly body?: TSchema
  /** Largest body, in bytes. Default: 64 KiB. */
  readonly bodyLimitBytes?: number
  readonly response: OperationResponse
  /** Other answers that are no errors, by status. */
  readonly alsoAnswers?: Readonly<Record<number, Omit<OperationResponse, 'status'>>>
  /** What it can fail with, besides what every request can. */
  readonly errors?: readonly ErrorCode[]
}

/** A request as the handlers of operations get it. */
export type ControlRequest<Body = unknown> = FastifyRequest<{
  Params: Record<string, string>
  Querystring: Record<string, unknown>
  Body: Body
}>

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks. Only of operations that need a token. */
    principal: Principal
    audit: RequestAudit
  }
  interface FastifyInstance {
    /** Enters a request whose outcome is known in the audit log, if it belongs there. */
    enterAudit: (request: FastifyRequest) => void
  }
  interface FastifyContextConfig {
    operation?: Operation
  }
}

/** Adds the route of an operation. What the handler gives is the answer; a status of 204 has none. */
export function addOperation<Body = unknown>(
  app: FastifyInstance,
  operation: Operation,
  handler: (request: ControlRequest<Body>, reply: FastifyReply) => unknown,
): void {
  const { method, url, body, bodyLimitBytes, response } = operation
  app.route<{ Params: Record<string, string>; Querystring: Record<string, unknown>; Body: Body }>({
    method,
    url,
    ...(body !== undefined && { preHandler: (request, _reply, done) => done(faultOfBody(request, body)) }),
    ...(bodyLimitBytes !== undefined && { bodyLimit: bodyLimitBytes }),
    config: { operation },
    handler: async (request, reply) => {
      reply.code(response.status)
      if (response.contentType !== undefined) reply.type(response.contentType)
      try {
        return await handler(request, reply)
      } catch (cause) {
        request.audit.error = errorOfRequest(cause, request.routeOptions.bodyLimit).code
        throw cause
      } finally {
        // Not only when it is answered: the client may have left by now.
        request.server.enterAudit(request)
      }
    },
  })
}

/**
 * Fastify would make the validators of all operations as the server starts, in a tenth of that time; of most none is ever used.
 */
function faultOfBody(request: FastifyRequest, schema: TSchema): CarpoolError | undefined {
  const isValid = request.compileValidationSchema(schema, 'body') as ((body: unknown) => boolean) & { errors?: SchemaFault[] }
  return isValid(request.body ?? null) ? undefined : new CarpoolError('bad-request', describeSchemaFault(isValid.errors ?? []))
}

/** @throws CarpoolError `forbidden` if the token does not allow the operation that is asked for */
export function requireOperation({ principal, routeOptions }: FastifyRequest): void {
  const { operation } = routeOptions.config
  if (operation?.scope !== undefined) requireScope(principal, operation.scope)
}

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
  return errorOfFastify(cause, bodyLimitBytes)
}

/** Says of the first fault where it is; of a key that may not be there, which it is. */
function describeSchemaFault([fault]: readonly SchemaFault[]): string {
  const where = 'body' + (fault?.instancePath ?? '').replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
  const key = fault?.params['additionalProperty']
  const what = key === undefined ? (fault?.message ?? 'is not valid') : `may not have the key ${JSON.stringify(key)}`
  return `${where} ${what}.`
}
