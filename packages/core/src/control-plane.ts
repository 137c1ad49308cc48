import type { HandlerForm } from './function.ts'
import type { HeaderList } from './http.ts'
import type { FunctionLimits } from './limits.ts'
import type { Outcome } from './outcome.ts'
import type { Problem } from './problem.ts'

/** `POST /v1/functions/:name/revisions` */
export interface DeployRequest {
  /** The bundle: one script that evaluates to a function which returns the module's exports. */
  readonly code: string
  /** Source map v3 of `code`, as JSON text; its sources are relative to the function's folder. */
  readonly sourceMap: string
  readonly handlerExport?: string
  readonly limits?: Partial<FunctionLimits>
  readonly env?: Readonly<Record<string, string>>
}

/** A deployed function with its live revision; also the answer to a deploy (201). */
export interface FunctionInfo {
  readonly name: string
  readonly revision: string
  readonly form: HandlerForm
  /** Where it answers on the data plane, with a slash at the end. */
  readonly url: string
  readonly deployedAt: string
  readonly codeBytes: number
  readonly limits: FunctionLimits
  /** Since the server started. */
  readonly invocations: number
  readonly failures: number
}

/** `POST /v1/functions/:name/invocations` */
export interface InvokeRequest {
  readonly method: string
  /** Path with query, after the function's name. */
  readonly path: string
  readonly headers: HeaderList
  readonly bodyBase64: string
}

export interface InvokeResponse {
  readonly invocationId: string
  readonly outcome: Outcome
  readonly status: number
  readonly headers: HeaderList
  readonly bodyBase64: string
  /** Present unless `outcome` is `ok`. */
  readonly problem?: Problem
}

/** `GET /v1/server` */
export interface ServerInfo {
  readonly version: string
  readonly url: string
  readonly adminUrl: string
  readonly hosts: readonly HostInfo[]
}

export interface HostInfo {
  readonly id: number
  readonly pid: number
  readonly state: 'starting' | 'ready' | 'stopping'
  readonly inFlight: number
  readonly startedAt: string
}
