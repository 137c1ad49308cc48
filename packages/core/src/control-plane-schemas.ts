/**
 * What the control plane takes and answers: each as a schema, by which the server checks requests and describes itself, and the
 * type of it. Who needs the types alone imports them from `@carpool/core`, which loads no schema.
 */
import type { Static, TSchema, TUnsafe } from 'typebox'
import { FUNCTION_STATES, HOST_STATES, MAX_TOKEN_DAYS, SERVER_STATES, TOKEN_SCOPES } from './control-plane.ts'
import type { ErrorCode } from './errors.ts'
import type { HandlerForm } from './function.ts'
import type { HeaderList } from './http.ts'
import { OUTCOMES, type Outcome } from './outcome.ts'
import { Type } from './schema.ts'

type ReadOnly<T> = T extends object ? { readonly [K in keyof T]: ReadOnly<T[K]> } : T
type TypeOf<S extends TSchema> = ReadOnly<Static<S>>

const text = Type.String()
const count = Type.Integer({ minimum: 0 })
const figure = Type.Number({ minimum: 0 })
/** ISO 8601. */
const time = Type.String({ format: 'date-time' })
const optional = Type.Optional
/** What is not named in a request is a mistake. */
const CLOSED = { additionalProperties: false }

export function oneOf<T extends string>(values: readonly T[]): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: values })
}

const ENV_KEY = '^[A-Za-z_][A-Za-z0-9_]*$'

/** `POST /v1/functions/:name/revisions` */
export type DeployRequest = TypeOf<typeof DEPLOY_REQUEST>
export const DEPLOY_REQUEST = Type.Object(
  {
    /** The bundle: one script that evaluates to a function which returns the module's exports. */
    code: text,
    /** Source map v3 of `code`, as JSON text; its sources are relative to the function's folder. */
    sourceMap: text,
    handlerExport: optional(Type.String({ minLength: 1, maxLength: 200 })),
    limits: optional(
      Type.Object(
        {
          memoryMb: optional(Type.Integer()),
          cpuMs: optional(Type.Integer()),
          wallMs: optional(Type.Integer()),
          streamMs: optional(Type.Integer()),
          idleMs: optional(Type.Integer()),
          concurrency: optional(Type.Integer()),
        },
        CLOSED,
      ),
    ),
    env: optional(Type.Record(Type.String({ pattern: ENV_KEY }), text, CLOSED)),
    /** Hosts that it may fetch from; the egress checks them. Absent: all that the server permits; empty: none. */
    egress: optional(Type.Array(text)),
  },
  CLOSED,
)

/** A deployed function with its live revision; also the answer to a deploy (201). */
export type FunctionInfo = TypeOf<typeof FUNCTION_INFO>
export const FUNCTION_INFO = Type.Object({
  name: text,
  owner: text,
  state: oneOf(FUNCTION_STATES),
  /** Why it is disabled; absent if it is not. */
  reason: optional(text),
  revision: text,
  form: oneOf<HandlerForm>(['fetch', 'lambda']),
  /** Where it answers on the data plane, with a slash at the end. */
  url: text,
  deployedAt: time,
  codeBytes: count,
  limits: Type.Object({ memoryMb: count, cpuMs: count, wallMs: count, streamMs: count, idleMs: count, concurrency: count }),
  /** Since the server started. */
  invocations: count,
  failures: count,
})

const HEADER_NAME = "^[a-z0-9!#$%&'*+.^_`|~-]+$"
/** RFC 9110, section 5.5: no control characters, so that a value cannot end its header. */
const HEADER_VALUE = '^[\\t\\x20-\\x7e\\x80-\\xff]*$'

/** `POST /v1/functions/:name/invocations` */
export type InvokeRequest = TypeOf<typeof INVOKE_REQUEST>
export const INVOKE_REQUEST = Type.Object(
  {
    method: Type.String({ pattern: '^[A-Z]{1,20}$' }),
    /** Path with query, after the function's name. */
    path: Type.String({ pattern: '^/', maxLength: 16_384 }),
    headers: Type.Array(Type.Tuple([Type.String({ pattern: HEADER_NAME }), Type.String({ pattern: HEADER_VALUE })]), {
      maxItems: 200,
    }),
    // Without the pattern it would be decoded as far as it goes.
    bodyBase64: Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' }),
  },
  CLOSED,
)

export const PROBLEM = Type.Object({
  type: text,
  title: text,
  status: Type.Integer({ minimum: 400, maximum: 599 }),
  code: text,
  detail: text,
  invocationId: optional(text),
})

export type InvokeResponse = TypeOf<typeof INVOKE_RESPONSE>
export const INVOKE_RESPONSE = Type.Object({
  invocationId: text,
  outcome: oneOf(Object.keys(OUTCOMES) as Outcome[]),
  status: Type.Integer(),
  headers: Type.Unsafe<HeaderList>(Type.Array(Type.Array(text, { minItems: 2, maxItems: 2 }))),
  bodyBase64: text,
  /** Present unless `outcome` is `ok`. */
  problem: optional(PROBLEM),
})

/** `POST /v1/functions/:name/disable` */
export type DisableRequest = TypeOf<typeof DISABLE_REQUEST>
export const DISABLE_REQUEST = Type.Object(
  {
    /** Completes "it is disabled because …" on one line. Default: an operator disabled it. */
    reason: optional(
      Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$' }),
    ),
  },
  CLOSED,
)

export type MissingLayersInfo = TypeOf<typeof MISSING_LAYERS>
const MISSING_LAYERS = Type.Object({
  /** Names as in `carpool doctor`. */
  layers: Type.Array(text),
  /** Why they are not on, in sentences for people. Absent for who is no admin: it may name files of the machine. */
  why: optional(text),
  /** What would bring them, in sentences for people. */
  remedy: text,
})

/** How much of the sandbox stands around the host processes of a server: found when it started, and true for its life. */
export type SandboxInfo = TypeOf<typeof SANDBOX>
const SANDBOX = Type.Object({
  /** How many layers are on, */
  on: count,
  /** and how many there are. */
  total: count,
  /** Those that are not on, together where one and the same thing would bring them. */
  off: Type.Array(MISSING_LAYERS),
})

export type Percentiles = TypeOf<typeof PERCENTILES>
const PERCENTILES = Type.Object({ p50: figure, p90: figure, p99: figure })

export type HostInfo = TypeOf<typeof HOST>
const HOST = Type.Object({
  id: count,
  pid: Type.Integer(),
  state: oneOf(HOST_STATES),
  /** Present for a process that runs one function by itself, because it has harmed others: its name. */
  quarantineOf: optional(text),
  startedAt: time,
  /** Invocations that were sent there and not answered yet. */
  inFlight: count,
  /** Of these, the ones that have not begun to wait for a timer or a fetch: what `limit` is a limit of. */
  running: count,
  /** How many may be running; adapted by run delay. */
  limit: figure,
  /** How long entries that were ready to run waited for a core lately, in ms. */
  runDelayMs: PERCENTILES,
  /** CPU of the process lately, in cores. */
  cpuCores: figure,
  /** Share of the time in which its event loop was busy lately, 0 to 1. */
  loopUtilization: figure,
  /** How late its event loop is, in ms. */
  loopDelayMs: figure,
  /** Isolates with an entry on a thread at this moment. */
  enteredIsolates: count,
  isolates: count,
  /** Resident memory of the process. */
  memoryBytes: count,
  /** How full its core is: the larger of `cpuCores` and `loopUtilization`. Above 1 if it uses more than a core. */
  saturation: figure,
})

/** `GET /v1/server` */
export type ServerInfo = TypeOf<typeof SERVER_INFO>
export const SERVER_INFO = Type.Object({
  version: text,
  url: text,
  adminUrl: text,
  /** Empty for who is no admin. */
  hosts: Type.Array(HOST),
  sandbox: SANDBOX,
})

/** One decision about the number of hosts, with the figures that led to it. */
export type ScalingDecisionInfo = TypeOf<typeof SCALING_DECISION>
const SCALING_DECISION = Type.Object({
  at: time,
  action: text,
  reason: text,
  hostsBefore: count,
  hostsAfter: count,
  /** By name, with the unit in the name. */
  figures: Type.Record(text, Type.Number()),
})

/** Host processes that ended before they were ready, or soon after. */
export type FailedStartsInfo = TypeOf<typeof FAILED_STARTS>
const FAILED_STARTS = Type.Object({
  /** Without a success between them. */
  inRow: count,
  /** 0 if no attempt is waited for. */
  nextAttemptInMs: figure,
  /** How the last one ended. */
  last: optional(text),
})

/** What of the status those may see who are no admins: nothing that another owner's functions have a part in. */
export type StatusSummary = TypeOf<typeof STATUS_SUMMARY>
const STATUS_SUMMARY = Type.Object({
  version: text,
  state: oneOf(SERVER_STATES),
  /** Why it is not ready, in short sentences for people; empty if it is. */
  reasons: Type.Array(text),
  uptimeMs: count,
  sandbox: SANDBOX,
})

const STATUS_FIGURES = Type.Object({
  /** Cores that this server may use, by its cgroup; may be a fraction. */
  cores: figure,
  /** Cores of the machine that were busy lately, whoever used them. */
  machineBusyCores: figure,
  hosts: Type.Array(HOST),
  /** Invocations that were admitted and not answered yet, the queued ones included. */
  inFlight: count,
  /** Invocations that wait for a place in a host. */
  queued: count,
  /** Of all functions: answers that stream, WebSockets that functions accepted, and sockets that they opened to elsewhere. */
  open: Type.Object({ answer: count, websocket: count, socket: count }),
  /** Invocations refused since the server started, by the code of the error. */
  shed: Type.Record(text, count),
  /** The newest first, at most `MAX_DECISIONS`. */
  decisions: Type.Array(SCALING_DECISION),
  failedStarts: FAILED_STARTS,
})

/** `GET /v1/status`, for admins. */
export type StatusInfo = StatusSummary & TypeOf<typeof STATUS_FIGURES>
/** Of either; what only admins see is optional. */
export const STATUS = Type.Object({ ...STATUS_SUMMARY.properties, ...Type.Partial(STATUS_FIGURES).properties })

/** `GET /readyz`: 200 if the state is `ready`, else 503. */
export type ReadinessInfo = TypeOf<typeof READINESS>
export const READINESS = Type.Object({
  status: oneOf(SERVER_STATES),
  reasons: Type.Array(text),
  /** It has no part in the status: a server that insists on layers does not start without them. */
  sandbox: SANDBOX,
})

/** `POST /v1/tokens` */
export type TokenRequest = TypeOf<typeof TOKEN_REQUEST>
export const TOKEN_REQUEST = Type.Object(
  {
    /** Same rule as for the names of functions. */
    owner: Type.String({ maxLength: 63 }),
    scopes: Type.Array(oneOf(TOKEN_SCOPES), { minItems: 1, maxItems: 16 }),
    /** After how many days it expires. Absent: never. */
    days: optional(Type.Integer({ minimum: 1, maximum: MAX_TOKEN_DAYS })),
  },
  CLOSED,
)

/** A token, without what makes it one. */
export type TokenInfo = TypeOf<typeof TOKEN_INFO>
export const TOKEN_INFO = Type.Object({
  id: text,
  owner: text,
  scopes: Type.Array(oneOf(TOKEN_SCOPES)),
  createdAt: time,
  /** Absent: it never expires. */
  expiresAt: optional(time),
  /** To the minute. Absent: it was never used. */
  lastUsedAt: optional(time),
})

/** The answer to {@link TokenRequest}: the only time that the token is shown. */
export type CreatedToken = TypeOf<typeof CREATED_TOKEN>
export const CREATED_TOKEN = Type.Object({
  ...TOKEN_INFO.properties,
  /** What to send as `authorization: Bearer <token>`. */
  token: text,
})

/** `PUT /v1/functions/:name/secrets/:key` */
export type SecretRequest = TypeOf<typeof SECRET_REQUEST>
export const SECRET_REQUEST = Type.Object({ value: Type.String({ minLength: 1 }) }, CLOSED)

/** A secret, without its value, which the control plane never gives. */
export type SecretInfo = TypeOf<typeof SECRET_INFO>
export const SECRET_INFO = Type.Object({ key: text, createdAt: time, updatedAt: time })

/** The answer to {@link SecretRequest}. */
export type SetSecretInfo = TypeOf<typeof SET_SECRET_INFO>
export const SET_SECRET_INFO = Type.Object({
  ...SECRET_INFO.properties,
  /** The live revision, which has it. Absent: the function is not deployed yet. */
  revision: optional(text),
})

/** One change, or one access that was refused. */
export type AuditEntry = TypeOf<typeof AUDIT_ENTRY>
const AUDIT_ENTRY = Type.Object({
  time,
  /** What was asked for, such as `deployFunction`: the name of the operation in the OpenAPI document. */
  action: text,
  /** What it was asked for: the name of a function, a secret as `function/KEY`, or the id of a token. */
  subject: optional(text),
  /** `ok`, or the code of the error. */
  result: Type.Unsafe<'ok' | ErrorCode>(text),
  /** Who asked: the id of the token, or `operator` for the one of the data folder. Absent: there was no valid one. */
  tokenId: optional(text),
  /** Whose function, secret or token it is; of a refused access the owner of the token. */
  owner: optional(text),
  remoteAddress: text,
  /** What there is to say besides. */
  note: optional(text),
})

/** `GET /v1/audit` */
export type AuditPage = TypeOf<typeof AUDIT_PAGE>
export const AUDIT_PAGE = Type.Object({
  /** The newest last. */
  entries: Type.Array(AUDIT_ENTRY),
  /** Entries that could not be written since the server started. */
  lostEntries: count,
})
