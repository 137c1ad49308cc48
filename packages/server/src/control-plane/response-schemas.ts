import { FUNCTION_STATES, HOST_STATES, OUTCOMES, START_KINDS, TOKEN_SCOPES } from '@carpool/core'
import { LAYER_NAMES } from '@carpool/sandbox'
import { Type, type TSchema } from 'typebox'

/** What the answers of the control plane look like: the types of `packages/core/src/control-plane.ts`, for the OpenAPI document. */
const text = Type.String()
const count = Type.Integer({ minimum: 0 })
const figure = Type.Number({ minimum: 0 })
const time = Type.String({ format: 'date-time' })
const oneOf = (values: readonly string[]): TSchema => Type.Unsafe<string>({ type: 'string', enum: values })
const list = (of: TSchema): TSchema => Type.Array(of)
const optional = Type.Optional
/** Counts with these names, which have spaces between. */
const counts = (names: string) => Object.fromEntries(names.split(' ').map((name) => [name, count]))
const SERVER_STATES = ['starting', 'ready', 'saturated', 'draining', 'not-ready']

export const PROBLEM = Type.Object({
  type: text,
  title: text,
  status: Type.Integer({ minimum: 400, maximum: 599 }),
  code: text,
  detail: text,
  invocationId: optional(text),
})

const LIMITS = Type.Object({ memoryMb: count, cpuMs: count, wallMs: count, concurrency: count })

export const FUNCTION_INFO = Type.Object({
  name: text,
  owner: text,
  state: oneOf(FUNCTION_STATES),
  reason: optional(text),
  revision: text,
  form: oneOf(['fetch', 'lambda']),
  url: text,
  deployedAt: time,
  codeBytes: count,
  limits: LIMITS,
  invocations: count,
  failures: count,
})
export const FUNCTION_LIST = Type.Object({ functions: list(FUNCTION_INFO) })

export const INVOKE_RESPONSE = Type.Object({
  invocationId: text,
  outcome: oneOf(Object.keys(OUTCOMES)),
  status: Type.Integer(),
  headers: list(Type.Array(text, { minItems: 2, maxItems: 2 })),
  bodyBase64: text,
  problem: optional(PROBLEM),
})

export const SECRET_INFO = Type.Object({ key: text, createdAt: time, updatedAt: time })
export const SET_SECRET_INFO = Type.Object({ ...SECRET_INFO.properties, revision: optional(text) })
export const SECRET_LIST = Type.Object({ secrets: list(SECRET_INFO) })

const TOKEN = {
  id: text,
  owner: text,
  scopes: list(oneOf(TOKEN_SCOPES)),
  createdAt: time,
  expiresAt: optional(time),
  lastUsedAt: optional(time),
}
export const CREATED_TOKEN = Type.Object({ ...TOKEN, token: text })
export const TOKEN_LIST = Type.Object({ tokens: list(Type.Object(TOKEN)) })

export const AUDIT_PAGE = Type.Object({
  entries: list(
    Type.Object({
      time,
      action: text,
      subject: optional(text),
      result: text,
      tokenId: optional(text),
      owner: optional(text),
      remoteAddress: text,
      note: optional(text),
    }),
  ),
  lostEntries: count,
})

const TOTALS =
  'invocations failures refused coldStarts cpuUs initCpuUs backgroundCpuUs wallUs queueUs initUs exec1Ms exec1MbMs exec100Ms ' +
  'exec100MbMs init1Ms init1MbMs instanceUs instanceMbMs bytesIn bytesOut egressBytesIn egressBytesOut memoryPeakKb'
export const USAGE_ROWS = Type.Object({
  rows: list(Type.Object({ key: text, ...counts(TOTALS) })),
})

const RECORD_COUNTS =
  'startedAtMs host queueUs wallUs memoryMb bytesIn bytesOut cpuUs initUs initCpuUs memoryPeakKb egressBytesOut egressBytesIn attempts'
export const INVOCATION_RECORDS = Type.Object({
  invocations: list(
    Type.Object({
      id: text,
      functionName: text,
      revision: text,
      owner: text,
      trigger: oneOf(['http', 'cli']),
      start: oneOf(START_KINDS),
      outcome: oneOf([...Object.keys(OUTCOMES), 'refused']),
      error: optional(text),
      status: Type.Integer(),
      ...counts(RECORD_COUNTS),
    }),
  ),
})

const HOST = Type.Object({
  id: count,
  pid: Type.Integer(),
  state: oneOf(HOST_STATES),
  quarantineOf: optional(text),
  startedAt: time,
  inFlight: count,
  running: count,
  limit: figure,
  runDelayMs: Type.Object({ p50: figure, p90: figure, p99: figure }),
  cpuCores: figure,
  loopUtilization: figure,
  loopDelayMs: figure,
  enteredIsolates: count,
  isolates: count,
  memoryBytes: count,
  saturation: figure,
})

const SANDBOX = Type.Object({
  on: count,
  total: count,
  off: list(Type.Object({ layers: list(oneOf(LAYER_NAMES)), why: optional(text), remedy: text })),
})

export const SERVER_INFO = Type.Object({ version: text, url: text, adminUrl: text, hosts: list(HOST), sandbox: SANDBOX })

/** What only admins see is optional. */
export const STATUS = Type.Object({
  version: text,
  state: oneOf(SERVER_STATES),
  reasons: list(text),
  uptimeMs: count,
  sandbox: SANDBOX,
  cores: optional(figure),
  machineBusyCores: optional(figure),
  hosts: optional(list(HOST)),
  inFlight: optional(count),
  queued: optional(count),
  shed: optional(Type.Record(text, count)),
  decisions: optional(
    list(
      Type.Object({
        at: time,
        action: text,
        reason: text,
        hostsBefore: count,
        hostsAfter: count,
        figures: Type.Record(text, Type.Number()),
      }),
    ),
  ),
  failedStarts: optional(Type.Object({ inRow: count, nextAttemptInMs: figure, last: optional(text) })),
})

export const READINESS = Type.Object({ status: oneOf(SERVER_STATES), reasons: list(text), sandbox: SANDBOX })
export const HEALTH = Type.Object({ status: oneOf(['ok']) })
