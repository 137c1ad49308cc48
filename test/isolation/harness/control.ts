import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DeployRequest, FunctionInfo, LogLine, Problem } from '@carpool/core'
import type { TestServer } from '../../support/server.ts'

export const NO_MAP = '{"version":3,"sources":[],"names":[],"mappings":""}'

/** A refusal of the control plane. */
export type Refused = { readonly status: number; readonly problem: Problem }
export type Deployed = { readonly status: 201; readonly info: FunctionInfo } | Refused

/** Asks the control plane as the operator of the machine. */
export function askControl(server: TestServer, path: string, init: RequestInit = {}): Promise<Response> {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim()
  const headers = { 'authorization': `Bearer ${token}`, ...(init.body !== undefined && { 'content-type': 'application/json' }) }
  return fetch(server.adminUrl + path, { ...init, headers: { ...headers, ...(init.headers as Record<string, string>) } })
}

/** Deploys a script that evaluates to a factory, as the command would send it. Takes a fifth of the time of the command. */
export async function deployScript(
  server: TestServer,
  name: string,
  request: Pick<DeployRequest, 'code'> & Partial<DeployRequest>,
  owner = 'default',
): Promise<Deployed> {
  const response = await askControl(server, `/v1/functions/${encodeURIComponent(name)}/revisions?owner=${owner}`, {
    method: 'POST',
    body: JSON.stringify({ sourceMap: NO_MAP, ...request }),
  })
  const answer: unknown = await response.json()
  return response.status === 201
    ? { status: 201, info: answer as FunctionInfo }
    : { status: response.status, problem: answer as Problem }
}

/** The lines of a function's log, the oldest first. */
export async function readLog(server: TestServer, name: string, limit = 1000): Promise<LogLine[]> {
  const response = await askControl(server, `/v1/logs?function=${encodeURIComponent(name)}&limit=${limit}`)
  const text = await response.text()
  if (!response.ok) throw new Error(`The log of ${name}: ${text}`)
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LogLine)
}
