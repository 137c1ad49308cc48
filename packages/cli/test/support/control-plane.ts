import {
  CarpoolError,
  problemOfError,
  resolveLimits,
  type DeployRequest,
  type FunctionInfo,
  type InvocationRecord,
  type InvokeRequest,
  type InvokeResponse,
  type LogLine,
  type StatusInfo,
  type UsageRow,
} from '@carpool/core'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Test } from 'tap'

export const TOKEN = 'secret-token'

/** A control plane without a server behind it: it keeps what it is sent and answers what the test tells it to. */
export async function startControlPlane(t: Test) {
  const state = {
    functions: new Map<string, FunctionInfo>(),
    deploys: [] as DeployRequest[],
    invocations: [] as InvokeRequest[],
    answer: { outcome: 'ok', status: 200, headers: [], bodyBase64: '' } as Omit<InvokeResponse, 'invocationId'>,
    log: [] as LogLine[],
    logQueries: [] as string[],
    /** Rows of usage, by what a row stands for. */
    usage: {} as Readonly<Record<string, readonly UsageRow[]>>,
    records: [] as readonly InvocationRecord[],
    status: undefined as StatusInfo | undefined,
    /** Query strings of the requests for usage and for records. */
    usageQueries: [] as string[],
    /** What else is answered, by method and path. */
    answers: {} as Readonly<Record<string, unknown>>,
    /** Each request to what `answers` has, with its body. */
    asked: [] as Array<{ readonly request: string; readonly body: unknown }>,
    /** Answers the next deploy instead. */
    refusal: undefined as CarpoolError | undefined,
    events: new EventEmitter<{ deploy: [] }>(),
  }
  const server = createServer((request, response) => {
    handle(request, response).catch((cause: unknown) => {
      const problem = problemOfError(CarpoolError.from(cause))
      response.writeHead(problem.status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
    })
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers.authorization !== `Bearer ${TOKEN}`) throw new CarpoolError('unauthorized', 'The token is not right.')
    const url = new URL(request.url ?? '', 'http://control')
    const [, , kind, name = '', action] = url.pathname.split('/')
    const send = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    switch (`${request.method} ${kind}${name && '/:name'}${action ? `/${action}` : ''}`) {
      case 'POST functions/:name/revisions': {
        const deploy = (await json(request)) as DeployRequest
        const { refusal } = state
        state.refusal = undefined
        if (refusal) throw refusal
        state.deploys.push(deploy)
        state.functions.set(name, infoOf(name, deploy))
        state.events.emit('deploy')
        return send(201, state.functions.get(name))
      }
      case 'GET status':
        return send(200, state.status)
      case 'GET functions':
        return send(200, { functions: [...state.functions.values()] })
      case 'DELETE functions/:name':
        if (!state.functions.delete(name)) throw new CarpoolError('not-found', `There is no function ${name}.`)
        response.writeHead(204).end()
        return
      case 'POST functions/:name/invocations':
        state.invocations.push((await json(request)) as InvokeRequest)
        return send(200, { invocationId: 'inv-1', ...state.answer })
      case 'GET logs':
        state.logQueries.push(url.search)
        response.writeHead(200, { 'content-type': 'application/x-ndjson' })
        for (const line of state.log) response.write(`${JSON.stringify(line)}\n`)
        if (!url.searchParams.has('follow')) response.end()
        else response.flushHeaders()
        return
      case 'GET usage':
        state.usageQueries.push(url.search)
        return send(200, { rows: state.usage[url.searchParams.get('by') ?? ''] ?? [] })
      case 'GET invocations':
        state.usageQueries.push(url.search)
        return send(200, { invocations: state.records })
      default: {
        const asked = `${request.method} ${url.pathname}`
        if (Object.hasOwn(state.answers, asked)) {
          const chunks = await Array.fromAsync(request)
          const body: unknown = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString())
          state.asked.push({ request: asked + url.search, body })
          return state.answers[asked] === undefined ? void response.writeHead(204).end() : send(200, state.answers[asked])
        }
        throw new CarpoolError('route-not-found', `There is nothing at ${url.pathname}.`)
      }
    }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Breaks off every response under way. */
    breakConnections: () => server.closeAllConnections(),
  })
}

export function infoOf(name: string, deploy: Partial<DeployRequest> = {}): FunctionInfo {
  return {
    name,
    owner: 'default',
    state: 'active',
    revision: '0123456789abcdef',
    form: 'fetch',
    url: `http://127.0.0.1:8080/${name}/`,
    deployedAt: '2026-01-01T00:00:00.000Z',
    codeBytes: deploy.code?.length ?? 1500,
    limits: resolveLimits(deploy.limits ?? {}),
    invocations: 12,
    failures: 0,
  }
}

export function logLine(msg: string, more: Partial<LogLine> = {}): LogLine {
  return {
    time: '2026-01-01T00:00:00.000Z',
    level: 'info',
    stream: 'console',
    function: 'hello',
    revision: '0123456789abcdef',
    invocationId: 'inv-1',
    msg,
    ...more,
  }
}
