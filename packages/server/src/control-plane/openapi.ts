import { ERRORS, PROBLEM_CONTENT_TYPE, type ErrorCode } from '@carpool/core'
import { PROBLEM } from '@carpool/core/control-plane-schemas'
import type { FastifyInstance } from 'fastify'
import { Type } from '@carpool/core/schema'
import { refuseWebPages } from './authenticate.ts'
import { addOperation, type Operation, type OperationResponse } from './operation.ts'
import { PATH_PARAMETERS } from './schemas.ts'

const SECURITY = 'token'
const ANY_REQUEST: readonly ErrorCode[] = ['bad-request', 'request-timeout', 'headers-too-large', 'internal']

const GET_OPENAPI: Operation = {
  id: 'getOpenApi',
  method: 'GET',
  url: '/v1/openapi.json',
  summary: 'This document.',
  response: { status: 200, description: 'An OpenAPI 3.1 document.', schema: Type.Object({}) },
  errors: ['unauthorized'],
}

/** Serves the OpenAPI document of the operations that are added afterwards. */
export function addOpenApi(app: FastifyInstance, version: string): void {
  const operations: Operation[] = []
  app.addHook('onRoute', ({ config, method }) => {
    if (config?.operation !== undefined && method !== 'HEAD') operations.push(config.operation)
  })
  let document: Promise<object> | undefined
  addOperation(app, GET_OPENAPI, (request) => {
    refuseWebPages(request)
    document ??= makeDocument(operations, version).catch((cause: unknown) => {
      document = undefined
      throw cause
    })
    return document
  })
}

/**
 * By an app of its own: the plugin has to be there before the routes, and takes a while to load, at the start of servers that
 * nobody asks.
 */
async function makeDocument(operations: readonly Operation[], version: string): Promise<object> {
  const [{ default: fastify }, { default: swagger }] = await Promise.all([import('fastify'), import('@fastify/swagger')])
  const app = fastify({ exposeHeadRoutes: false })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Carpool control plane', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
      components: {
        securitySchemes: {
          [SECURITY]: {
            type: 'http',
            scheme: 'bearer',
            description: 'A token of "carpool token create", or the one in the file admin-token of the data folder.',
          },
        },
      },
    },
    transform: ({ schema, url, route: { config } }) => ({
      schema: config?.operation === undefined ? schema : documented(config.operation),
      url,
    }),
  })
  for (const operation of operations) {
    const { method, url } = operation
    app.route({ method, url, config: { operation }, schema: {}, handler: () => undefined })
  }
  await app.ready()
  return app.swagger()
}

/** An operation as the plugin wants it. */
function documented(operation: Operation): object {
  const { id, url, summary, scope, query, body, response, alsoAnswers = {} } = operation
  const names = [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  return {
    operationId: id,
    summary: scope === undefined ? summary : `${summary} Scope: ${scope}.`,
    security: scope === undefined ? [] : [{ [SECURITY]: [] }],
    ...(names.length > 0 && {
      params: Type.Object(Object.fromEntries(names.map((name) => [name, PATH_PARAMETERS[name] ?? Type.String()]))),
    }),
    ...(query !== undefined && {
      querystring: Type.Object(Object.fromEntries(Object.entries(query).map(([name, { schema }]) => [name, schema]))),
    }),
    ...(body !== undefined && { body: asJsonSchema2020(body) }),
    response: {
      [response.status]: answer(response),
      ...Object.fromEntries(Object.entries(alsoAnswers).map(([status, also]) => [status, answer(also)])),
      ...Object.fromEntries(problemsOf(operation, names.length > 0)),
    },
  }
}

function answer({ description, schema, contentType = 'application/json' }: Omit<OperationResponse, 'status'>): object {
  return schema === undefined ? { description, type: 'null' } : { description, content: { [contentType]: { schema } } }
}

/** The errors of an operation by status, each as a problem document with the codes that it may have. */
function* problemsOf(
  { scope, body, errors = [], alsoAnswers = {} }: Operation,
  hasParameters: boolean,
): Generator<[string, object]> {
  const codes = new Set<ErrorCode>([
    ...ANY_REQUEST,
    ...(scope === undefined ? [] : (['unauthorized', 'forbidden'] as const)),
    ...(body === undefined ? [] : (['body-too-large', 'saturated'] as const)),
    // What is far too long to be a name.
    ...(hasParameters ? (['route-not-found'] as const) : []),
    ...errors,
  ])
  for (const [status, some] of Object.entries(Object.groupBy(codes, (code) => ERRORS[code].status))) {
    if (status in alsoAnswers || some === undefined) continue
    const schema = Type.Object({
      ...PROBLEM.properties,
      status: Type.Literal(Number(status)),
      code: Type.Unsafe<string>({ type: 'string', enum: some }),
    })
    const description = some.map((code) => `${code}: ${ERRORS[code].title}.`).join(' ')
    yield [status, { description, content: { [PROBLEM_CONTENT_TYPE]: { schema } } }]
  }
}

/** The validator reads draft 7, where a tuple is written in another way than in the JSON Schema of OpenAPI 3.1. */
function asJsonSchema2020(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(asJsonSchema2020)
  if (typeof schema !== 'object' || schema === null) return schema
  const { items, additionalItems, ...rest } = schema as Record<string, unknown>
  const plain = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, asJsonSchema2020(value)]))
  if (Array.isArray(items)) return { ...plain, prefixItems: items.map(asJsonSchema2020), items: additionalItems ?? true }
  return items === undefined ? plain : { ...plain, items: asJsonSchema2020(items) }
}
