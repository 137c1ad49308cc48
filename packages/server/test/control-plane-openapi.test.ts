import { readFileSync } from 'node:fs'
import { ERRORS, type ErrorCode } from '@carpool/core'
import t from 'tap'
import { startControlPlane } from './support/control-plane.ts'

interface Described {
  readonly operationId: string
  readonly summary: string
  readonly security: readonly object[]
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly requestBody?: object
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Record<string, { schema: Schema }> }>
  >
}

interface Schema {
  readonly properties: { readonly code?: { readonly enum: readonly ErrorCode[] } }
}

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

/** Each operation of a document with its method and path. */
function operationsOf({ paths }: Document): Array<readonly [request: string, operation: Described]> {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  )
}

t.test('the document describes each operation with its name, its security and its errors', async (t) => {
  const { url } = await startControlPlane(t)
  const response = await fetch(`${url}/v1/openapi.json`)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const document = (await response.json()) as Document
  t.match(document, {
    openapi: /^3\.1\./,
    info: { title: String, version: '0.0.0' },
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  })
  const operations = operationsOf(document)
  t.equal(new Set(operations.map(([, { operationId }]) => operationId)).size, operations.length)
  const open = operations.filter(([, { security }]) => security.length === 0).map(([request]) => request)
  t.strictSame(open.toSorted(), ['GET /healthz', 'GET /metrics', 'GET /readyz', 'GET /v1/openapi.json'])
  for (const [request, { summary, responses, requestBody, security, parameters = [] }] of operations) {
    t.match(summary, /\.$/, request)
    const names = [...request.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    t.strictSame(
      parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
      names,
    )
    t.equal(requestBody !== undefined, '413' in responses, `${request} has a body and its limit, or neither`)
    if (security.length > 0) t.ok('401' in responses && '403' in responses, request)
    for (const [status, { description, content }] of Object.entries(responses)) {
      t.not(description, '')
      const codes = content?.['application/problem+json']?.schema.properties.code?.enum
      t.equal(
        codes !== undefined,
        Number(status) >= 400 && !(request === 'GET /readyz' && status === '503'),
        `${request} ${status}`,
      )
      for (const code of codes ?? []) t.equal(ERRORS[code].status, Number(status), `${request} ${code}`)
    }
  }
})

t.test('the docs list the same requests', async (t) => {
  const { url } = await startControlPlane(t)
  const document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as Document
  const text = readFileSync(new URL('../../../docs/control-plane.md', import.meta.url), 'utf8')
  const listed = (text.split('\n## Requests\n')[1] ?? '').split('\n').filter((line) => line.startsWith('| `'))
  const described = operationsOf(document).map(([request, { summary }]) => {
    const [, what = summary, scope] = /^(.*) Scope: (\w+)\.$/.exec(summary) ?? []
    return `| \`${request}\` |${scope === undefined ? '' : ` \`${scope}\``} | ${what} |`
  })
  t.strictSame(listed.toSorted(), described.toSorted())
})
