import type { Answer } from '../harness/call.ts'
import { askControl } from '../harness/control.ts'
import type { TestServer } from '../../support/server.ts'

/** What the control plane answers to the operator of the machine. */
export async function askAsOperator(server: TestServer, path: string, init: RequestInit = {}): Promise<Answer> {
  return answerOf(path, await askControl(server, path, init))
}

/** What it answers to whoever sends these headers and no others. */
export async function askAs(
  server: TestServer,
  headers: Record<string, string>,
  path: string,
  init: RequestInit = {},
): Promise<Answer> {
  const contentType = init.body === undefined ? {} : { 'content-type': 'application/json' }
  return answerOf(path, await fetch(server.adminUrl + path, { ...init, headers: { ...contentType, ...headers } }))
}

async function answerOf(path: string, response: Response): Promise<Answer> {
  const { status, headers } = response
  const text = await response.text()
  const isProblem = headers.get('content-type')?.startsWith('application/problem+json') === true
  const code = isProblem ? (JSON.parse(text) as { code: string }).code : ''
  return { path, status, code, text, headers, id: '', tookMs: 0 }
}
