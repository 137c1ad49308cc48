import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AuditLog, openAccess } from '@carpool/access'
import {
  CarpoolError,
  monotonicClock,
  resolveLimits,
  type DeployRequest,
  type Invoke,
  type Problem,
  type SandboxInfo,
  type StatusInfo,
  type TokenScope,
} from '@carpool/core'
import { Meter, openLedger } from '@carpool/ledger'
import { openRegistry } from '@carpool/registry'
import { FunctionLogs, ServerMetrics } from '@carpool/telemetry'
import type { Test } from 'tap'
import type { ControlPlaneOptions } from '../../src/control-plane/control-plane-options.ts'
import { createControlPlane } from '../../src/control-plane/control-plane.ts'

export const TOKEN = 'a-token'
const MAX_BYTES = 100_000

export const SANDBOX: SandboxInfo = {
  on: 12,
  total: 13,
  off: [{ layers: ['user'], why: 'User 60999 may not read or enter /root.', remedy: 'Run the server as root.' }],
}
const STATUS: StatusInfo = {
  version: '0',
  state: 'ready',
  reasons: [],
  uptimeMs: 1,
  sandbox: SANDBOX,
  cores: 2,
  machineBusyCores: 0.5,
  hosts: [],
  inFlight: 0,
  queued: 0,
  open: { answer: 0, websocket: 0, socket: 0 },
  shed: {},
  decisions: [],
  failedStarts: { inRow: 0, nextAttemptInMs: 0 },
}

type Changes = ControlPlaneOptions['deployer']

/** Logs that tell how many follow them. */
export class CountedLogs extends FunctionLogs {
  followers = 0

  override follow(...args: Parameters<FunctionLogs['follow']>): () => void {
    const unfollow = super.follow(...args)
    this.followers++
    let isFollowing = true
    return () => {
      if (isFollowing) this.followers--
      isFollowing = false
      unfollow()
    }
  }
}

/** A control plane that listens, with all its stores on disk. There are no hosts: a deploy is published untried. */
export async function startControlPlane(
  t: Test,
  invoke: Invoke = (call) => call.end(new CarpoolError('internal', 'not called')),
  { deployer, ...options }: Omit<Partial<ControlPlaneOptions>, 'deployer'> & { deployer?: Partial<Changes> } = {},
) {
  const dataDir = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  const registry = openRegistry(dataDir, { codeCacheKey: 'none', maxBundleBytes: MAX_BYTES })
  const logs = new CountedLogs(dataDir)
  const ledger = await openLedger(dataDir, { retentionDays: 1, onProblem: ({ message }) => t.fail(message) })
  const access = openAccess(dataDir, { onProblem: (cause) => t.fail(String(cause)) })
  const audit = new AuditLog(join(dataDir, 'audit.ndjson'), {
    clock: monotonicClock,
    onProblem: ({ cause }) => t.fail(String(cause)),
  })
  const deploys: DeployRequest[] = []
  const faults: CarpoolError[] = []
  const state = { status: STATUS }
  const requireFree = (functionName: string, owner: string): void => {
    if ((registry.ownerOf(functionName) ?? owner) !== owner) throw new CarpoolError('name-taken', 'It is taken.')
  }
  const changes: Changes = {
    deploy: async (functionName, owner, request) => {
      requireFree(functionName, owner)
      deploys.push(request)
      const { code, sourceMap, limits = {}, env = {} } = request
      const config = { limits: resolveLimits(limits), env }
      const staged = await registry.stage({ functionName, owner, code, sourceMap, config })
      return registry.publish(staged, { form: 'fetch' })
    },
    remove: async (functionName) => registry.remove(functionName),
    setSecret: async (holder, key, value) => {
      requireFree(holder.functionName, holder.owner)
      access.secrets.commit(access.secrets.setting(holder, key, value))
      return registry.find(holder.functionName)
    },
    deleteSecret: async (holder, key) => {
      access.secrets.commit(access.secrets.deleting(holder, key))
      return registry.find(holder.functionName)
    },
    disable: (functionName, reason) => registry.disable(functionName, { reason }),
    enable: (functionName) => registry.enable(functionName),
    ...deployer,
  }
  const app = createControlPlane({
    version: '0.0.0',
    operatorToken: TOKEN,
    access,
    audit,
    registry,
    meter: new Meter({
      write: (record, instanceUs, written) => ledger.write(record, instanceUs, written),
      hold: (record) => ledger.hold(record),
      hasRun: () => true,
      clock: monotonicClock,
    }),
    logs,
    ledger,
    metrics: new ServerMetrics(),
    metricsAccess: 'open',
    invoke,
    deployer: changes,
    isQuarantined: (functionName) => functionName.startsWith('quarantined'),
    status: () => state.status,
    url: () => 'http://127.0.0.1:1',
    adminUrl: () => 'http://127.0.0.1:2',
    answerTimeoutMs: 60_000,
    maxBodyBytes: MAX_BYTES,
    maxBundleBytes: MAX_BYTES,
    onFault: (error) => faults.push(error),
    ...options,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await app.close()
    await logs.close()
    await ledger.close()
    await audit.flush()
    access.close()
    registry.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const send = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${TOKEN}`, ...(init.headers as Record<string, string>) } })
  const post = (path: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
    send(path, { ...init, method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  /** The same with a token of an owner. */
  const as = (owner: string, ...scopes: TokenScope[]) => {
    const { id, token } = access.tokens.create({ owner, scopes })
    const headers = { authorization: `Bearer ${token}` }
    const sendAs = (path: string, init: RequestInit = {}): Promise<Response> =>
      send(path, { ...init, headers: { ...headers, ...(init.headers as Record<string, string>) } })
    const withBody = (method: 'POST' | 'PUT', path: string, body: unknown): Promise<Response> =>
      sendAs(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    return {
      id,
      token,
      send: sendAs,
      get: async (path: string): Promise<unknown> => (await sendAs(path)).json(),
      post: (path: string, body: unknown) => withBody('POST', path, body),
      put: (path: string, body: unknown) => withBody('PUT', path, body),
      delete: (path: string) => sendAs(path, { method: 'DELETE' }),
    }
  }
  return { url, dataDir, registry, logs, ledger, access, audit, deploys, faults, state, send, post, as }
}

export async function problemOf(response: Response): Promise<Problem & { readonly contentType: string | null }> {
  return { ...((await response.json()) as Problem), contentType: response.headers.get('content-type') }
}
