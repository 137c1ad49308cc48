import {
  CarpoolError,
  checkFunctionName,
  isErrorCode,
  type DeployRequest,
  type FunctionInfo,
  type InvocationQuery,
  type InvocationRecord,
  type InvokeRequest,
  type InvokeResponse,
  type LogLine,
  type Problem,
  type StatusInfo,
  type UsageQuery,
  type UsageRow,
} from '@carpool/core'
import type { IncomingMessage } from 'node:http'
import { readBody, sendControlRequest, type ControlRequest } from './control-request.ts'
import { linesOf } from './lines.ts'

export interface LogQuery {
  /** Absent: of all functions. */
  readonly functionName?: string | undefined
  /** Most lines of the past, the latest ones; absent: as the server likes. */
  readonly limit?: number | undefined
  /** Go on with what is logged from now on. */
  readonly follow?: boolean | undefined
  /** Ends the reading. */
  readonly signal?: AbortSignal
}

/**
 * The control plane of one server. Every method throws what the server answers as a CarpoolError, and `unreachable` if there is no
 * answer.
 */
export class ApiClient {
  readonly #adminUrl: string
  readonly #token: string | undefined

  constructor({ adminUrl, token }: { readonly adminUrl: string; readonly token?: string | undefined }) {
    this.#adminUrl = adminUrl.replace(/\/+$/, '')
    this.#token = token
  }

  /** How the server fares. */
  async status(): Promise<StatusInfo> {
    return await this.#json('GET', '/v1/status')
  }

  async deploy(name: string, revision: DeployRequest): Promise<FunctionInfo> {
    return await this.#json('POST', `${functionPath(name)}/revisions`, revision)
  }

  async list(): Promise<readonly FunctionInfo[]> {
    const { functions } = await this.#json<{ readonly functions: readonly FunctionInfo[] }>('GET', '/v1/functions')
    return functions
  }

  async delete(name: string): Promise<void> {
    const response = await this.#send({ method: 'DELETE', path: functionPath(name) })
    response.resume()
  }

  async invoke(name: string, request: InvokeRequest): Promise<InvokeResponse> {
    return await this.#json('POST', `${functionPath(name)}/invocations`, request)
  }

  /** Totals of usage, a row for each function, owner or hour. */
  async usage({ by, sinceMs, functionName }: UsageQuery): Promise<readonly UsageRow[]> {
    const query = new URLSearchParams({
      by,
      ...(sinceMs !== undefined && { since: String(sinceMs) }),
      ...(functionName !== undefined && { function: checkFunctionName(functionName) }),
    })
    const { rows } = await this.#json<{ readonly rows: readonly UsageRow[] }>('GET', `/v1/usage?${query.toString()}`)
    return rows
  }

  /** Records of single invocations. */
  async invocations({ functionName, sinceMs, failed, slow, limit }: InvocationQuery): Promise<readonly InvocationRecord[]> {
    const query = new URLSearchParams({
      ...(functionName !== undefined && { function: checkFunctionName(functionName) }),
      ...(sinceMs !== undefined && { since: String(sinceMs) }),
      ...(failed && { failed: 'true' }),
      ...(slow && { slow: 'true' }),
      limit: String(limit),
    })
    const path = `/v1/invocations?${query.toString()}`
    const { invocations } = await this.#json<{ readonly invocations: readonly InvocationRecord[] }>('GET', path)
    return invocations
  }

  async *logs({ functionName, limit, follow, signal }: LogQuery): AsyncGenerator<LogLine> {
    const query = new URLSearchParams({
      ...(functionName !== undefined && { function: checkFunctionName(functionName) }),
      ...(limit !== undefined && { limit: String(limit) }),
      ...(follow && { follow: 'true' }),
    })
    const path = `/v1/logs?${query.toString()}`
    const response = await this.#send({ method: 'GET', path, signal })
    for await (const line of linesOf(readBody(response, this.#urlOf(path)))) yield parse(line, this.#urlOf(path)) as LogLine
  }

  async #json<T>(method: ControlRequest['method'], path: string, body?: unknown): Promise<T> {
    const response = await this.#send({ method, path, body })
    return parse(await readText(response, this.#urlOf(path)), this.#urlOf(path)) as T
  }

  async #send(request: Omit<ControlRequest, 'url' | 'token'> & { readonly path: string }): Promise<IncomingMessage> {
    const url = this.#urlOf(request.path)
    const response = await sendControlRequest({ ...request, url, token: this.#token })
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw errorOfProblem(parse(await readText(response, url), url) as Partial<Problem>, url)
  }

  #urlOf(path: string): URL {
    return new URL(this.#adminUrl + path)
  }
}

function functionPath(name: string): string {
  return `/v1/functions/${checkFunctionName(name)}`
}

async function readText(response: IncomingMessage, url: URL): Promise<string> {
  return Buffer.concat(await Array.fromAsync(readBody(response, url))).toString()
}

function parse(text: string, url: URL): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw notACarpoolServer(url, cause)
  }
}

function errorOfProblem({ code, detail }: Partial<Problem>, url: URL): CarpoolError {
  if (typeof code !== 'string' || typeof detail !== 'string') return notACarpoolServer(url)
  return isErrorCode(code) ? new CarpoolError(code, detail) : new CarpoolError('internal', `${code}: ${detail}`)
}

function notACarpoolServer(url: URL, cause?: unknown): CarpoolError {
  return new CarpoolError('unreachable', `What answers at ${url.origin} is no control plane of Carpool.`, { cause })
}
