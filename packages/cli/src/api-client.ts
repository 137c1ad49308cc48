import {
  CarpoolError,
  checkFunctionName,
  isErrorCode,
  type AuditPage,
  type CreatedToken,
  type DeployRequest,
  type DisableRequest,
  type ErrorCode,
  type FunctionInfo,
  type InvocationQuery,
  type InvocationRecord,
  type InvokeRequest,
  type InvokeResponse,
  type LogLine,
  type Problem,
  type SecretInfo,
  type SetSecretInfo,
  type StatusInfo,
  type StatusSummary,
  type TokenInfo,
  type TokenRequest,
  type UsageQuery,
  type UsageRow,
} from '@carpool/core'
import type { IncomingMessage } from 'node:http'
import { type ControlRequest, linesOf, readBody, sendControlRequest } from './control-request.ts'
import { usageError } from './output.ts'

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

export interface ApiClientOptions {
  readonly adminUrl: string
  /** Address of the data plane, which a client can do without. */
  readonly url?: string
  readonly token?: string | undefined
}

/**
 * The control plane of one server. Every method throws what the server answers as a CarpoolError, and `unreachable` if there is
 * no answer.
 */
export class ApiClient {
  /** Address of the control plane, without a slash at the end: what `--url` takes. */
  readonly adminUrl: string
  /** The same of the data plane, if it is known. */
  readonly dataUrl: string | undefined
  readonly #token: string | undefined

  constructor({ adminUrl, url, token }: ApiClientOptions) {
    this.adminUrl = adminUrl.replace(/\/+$/, '')
    this.dataUrl = url?.replace(/\/+$/, '')
    this.#token = token
  }

  /** How the server fares; without an admin token only in short. */
  async status(): Promise<StatusInfo | StatusSummary> {
    return await this.#json('GET', '/v1/status')
  }

  /** @param owner for whom; only an admin may say so. Absent: for the owner of the token */
  async deploy(name: string, revision: DeployRequest, owner?: string): Promise<FunctionInfo> {
    return await this.#json('POST', `${functionPath(name)}/revisions${ownerQuery(owner)}`, revision)
  }

  async list(): Promise<readonly FunctionInfo[]> {
    const { functions } = await this.#json<{ readonly functions: readonly FunctionInfo[] }>('GET', '/v1/functions')
    return functions
  }

  async delete(name: string): Promise<void> {
    await this.#done('DELETE', functionPath(name))
  }

  async enable(name: string): Promise<void> {
    await this.#done('POST', `${functionPath(name)}/enable`)
  }

  async disable(name: string, request: DisableRequest): Promise<void> {
    await this.#done('POST', `${functionPath(name)}/disable`, request)
  }

  async setSecret(name: string, key: string, value: string, owner?: string): Promise<SetSecretInfo> {
    return await this.#json('PUT', secretPath(name, key) + ownerQuery(owner), { value })
  }

  /** Keys and times; nobody is given a value. */
  async secrets(name: string, owner?: string): Promise<readonly SecretInfo[]> {
    const path = `${functionPath(name)}/secrets${ownerQuery(owner)}`
    const { secrets } = await this.#json<{ readonly secrets: readonly SecretInfo[] }>('GET', path)
    return secrets
  }

  async deleteSecret(name: string, key: string, owner?: string): Promise<void> {
    await this.#done('DELETE', secretPath(name, key) + ownerQuery(owner))
  }

  async createToken(request: TokenRequest): Promise<CreatedToken> {
    return await this.#json('POST', '/v1/tokens', request)
  }

  async tokens(): Promise<readonly TokenInfo[]> {
    const { tokens } = await this.#json<{ readonly tokens: readonly TokenInfo[] }>('GET', '/v1/tokens')
    return tokens
  }

  async revokeToken(id: string): Promise<void> {
    await this.#done('DELETE', `/v1/tokens/${checkTokenId(id)}`)
  }

  /** @param limit most entries, the latest ones; absent: as the server likes */
  async audit(limit?: number): Promise<AuditPage> {
    return await this.#json('GET', limit === undefined ? '/v1/audit' : `/v1/audit?limit=${limit}`)
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

  async #done(method: ControlRequest['method'], path: string, body?: unknown): Promise<void> {
    const response = await this.#send({ method, path, body })
    response.resume()
  }

  async #send(request: Omit<ControlRequest, 'url' | 'token'> & { readonly path: string }): Promise<IncomingMessage> {
    const url = this.#urlOf(request.path)
    const response = await sendControlRequest({ ...request, url, token: this.#token })
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw errorOfProblem(parse(await readText(response, url), url) as Partial<Problem>, url)
  }

  #urlOf(path: string): URL {
    return new URL(this.adminUrl + path)
  }
}

function functionPath(name: string): string {
  return `/v1/functions/${checkFunctionName(name)}`
}

function secretPath(name: string, key: string): string {
  // Two dots in a path would lead to the function itself.
  if (!/^\w{1,256}$/.test(key)) throw usageError(`${JSON.stringify(key)} is no key of a secret: use letters, digits and "_"`)
  return `${functionPath(name)}/secrets/${key}`
}

function checkTokenId(id: string): string {
  if (/^[0-9a-f]{16}$/.test(id)) return id
  throw usageError(`${JSON.stringify(id)} is no id of a token; "carpool token list" shows them`)
}

function ownerQuery(owner: string | undefined): string {
  return owner === undefined ? '' : `?${new URLSearchParams({ owner }).toString()}`
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

/** What another server might not have answered: the message names the server. */
const OF_THIS_SERVER: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'unauthorized',
  'forbidden',
  'not-found',
  'token-not-found',
  'secret-not-found',
  'name-taken',
])

function errorOfProblem({ code, detail }: Partial<Problem>, url: URL): CarpoolError {
  if (typeof code !== 'string' || typeof detail !== 'string') return notACarpoolServer(url)
  if (!isErrorCode(code)) return new CarpoolError('internal', `${code}: ${detail}`)
  return new CarpoolError(code, OF_THIS_SERVER.has(code) ? `${detail} (server: ${url.origin})` : detail)
}

function notACarpoolServer(url: URL, cause?: unknown): CarpoolError {
  return new CarpoolError('unreachable', `What answers at ${url.origin} is no control plane of Carpool.`, { cause })
}
