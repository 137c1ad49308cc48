import type { ErrorCode } from './errors.ts'
import type { HandlerForm } from './function.ts'
import type { HeaderList } from './http.ts'
import type { FunctionLimits } from './limits.ts'
import type { Outcome } from './outcome.ts'
import type { Problem } from './problem.ts'

/** `POST /v1/functions/:name/revisions` */
export interface DeployRequest {
  /** The bundle: one script that evaluates to a function which returns the module's exports. */
  readonly code: string
  /** Source map v3 of `code`, as JSON text; its sources are relative to the function's folder. */
  readonly sourceMap: string
  readonly handlerExport?: string
  readonly limits?: Partial<FunctionLimits>
  readonly env?: Readonly<Record<string, string>>
  /** Hosts that it may fetch from. Absent: all that the server permits; empty: none. */
  readonly egress?: readonly string[]
}

/**
 * Whether calls of a function are taken:
 *
 * - `active`: they are.
 * - `quarantined`: they are, but in a host process of its own, because its code took down others.
 * - `disabled`: they are refused until an operator enables it.
 */
export const FUNCTION_STATES = ['active', 'quarantined', 'disabled'] as const
export type FunctionState = (typeof FUNCTION_STATES)[number]

/** A deployed function with its live revision; also the answer to a deploy (201). */
export interface FunctionInfo {
  readonly name: string
  readonly owner: string
  readonly state: FunctionState
  /** Why it is disabled; absent if it is not. */
  readonly reason?: string
  readonly revision: string
  readonly form: HandlerForm
  /** Where it answers on the data plane, with a slash at the end. */
  readonly url: string
  readonly deployedAt: string
  readonly codeBytes: number
  readonly limits: FunctionLimits
  /** Since the server started. */
  readonly invocations: number
  readonly failures: number
}

/** `POST /v1/functions/:name/invocations` */
export interface InvokeRequest {
  readonly method: string
  /** Path with query, after the function's name. */
  readonly path: string
  readonly headers: HeaderList
  readonly bodyBase64: string
}

export interface InvokeResponse {
  readonly invocationId: string
  readonly outcome: Outcome
  readonly status: number
  readonly headers: HeaderList
  readonly bodyBase64: string
  /** Present unless `outcome` is `ok`. */
  readonly problem?: Problem
}

/** `POST /v1/functions/:name/disable` */
export interface DisableRequest {
  /** Completes "it is disabled because …". Default: an operator disabled it. */
  readonly reason?: string
}

/** `GET /v1/server` */
export interface ServerInfo {
  readonly version: string
  readonly url: string
  readonly adminUrl: string
  /** Empty for who is no admin. */
  readonly hosts: readonly HostInfo[]
  readonly sandbox: SandboxInfo
}

/** How much of the sandbox stands around the host processes of a server: found when it started, and true for its life. */
export interface SandboxInfo {
  /** How many layers are on, */
  readonly on: number
  /** and how many there are. */
  readonly total: number
  /** Those that are not on, together where one and the same thing would bring them. */
  readonly off: readonly MissingLayersInfo[]
}

export interface MissingLayersInfo {
  /** Names as in `carpool doctor`. */
  readonly layers: readonly string[]
  /** Why they are not on, in sentences for people. Absent for who is no admin: it may name files of the machine. */
  readonly why?: string
  /** What would bring them, in sentences for people. */
  readonly remedy: string
}

/**
 * The life of a host process:
 *
 * - `standby`: started, but not counted as capacity until it is promoted.
 * - `starting`: promoted or started for capacity, and not ready yet.
 * - `ready`: takes invocations.
 * - `saturated`: at its limit, or what runs there fills its core and has to wait.
 * - `draining`: gets no more invocations, and ends with the last one that it has.
 * - `poisoned`: gets no more invocations, because what runs there harmed the process.
 * - `gone`: the process has ended.
 */
export const HOST_STATES = ['standby', 'starting', 'ready', 'saturated', 'draining', 'poisoned', 'gone'] as const
export type HostState = (typeof HOST_STATES)[number]

export interface HostInfo {
  readonly id: number
  readonly pid: number
  readonly state: HostState
  /** Present for a process that runs one function by itself, because it has harmed others: its name. */
  readonly quarantineOf?: string
  /** ISO 8601. */
  readonly startedAt: string
  /** Invocations that were sent there and not answered yet. */
  readonly inFlight: number
  /** Of these, the ones that have not begun to wait for a timer or a fetch: what `limit` is a limit of. */
  readonly running: number
  /** How many may be running; adapted by run delay. */
  readonly limit: number
  /** How long entries that were ready to run waited for a core lately, in ms. */
  readonly runDelayMs: Percentiles
  /** CPU of the process lately, in cores. */
  readonly cpuCores: number
  /** Share of the time in which its event loop was busy lately, 0 to 1. */
  readonly loopUtilization: number
  /** How late its event loop is, in ms. */
  readonly loopDelayMs: number
  /** Isolates with an entry on a thread at this moment. */
  readonly enteredIsolates: number
  readonly isolates: number
  /** Resident memory of the process. */
  readonly memoryBytes: number
  /** How full its core is: the larger of `cpuCores` and `loopUtilization`. Above 1 if it uses more than a core. */
  readonly saturation: number
}

export interface Percentiles {
  readonly p50: number
  readonly p90: number
  readonly p99: number
}

/** What the server as a whole is up to. Only a `ready` one is ready for `/readyz`; `not-ready` says why in `reasons`. */
export type ServerState = 'starting' | 'ready' | 'saturated' | 'draining' | 'not-ready'

/** `GET /v1/status` */
export interface StatusInfo {
  readonly version: string
  /** `saturated`: the CPU is full, and calls wait so long that some are refused. */
  readonly state: ServerState
  /** Why it is not ready, in short sentences for people; empty if it is. */
  readonly reasons: readonly string[]
  readonly uptimeMs: number
  readonly sandbox: SandboxInfo
  /** Cores that this server may use, by its cgroup; may be a fraction. */
  readonly cores: number
  /** Cores of the machine that were busy lately, whoever used them. */
  readonly machineBusyCores: number
  readonly hosts: readonly HostInfo[]
  /** Invocations that were admitted and not answered yet, the queued ones included. */
  readonly inFlight: number
  /** Invocations that wait for a place in a host. */
  readonly queued: number
  /** Invocations refused since the server started, by the code of the error. */
  readonly shed: Readonly<Record<string, number>>
  /** The newest first, at most {@link MAX_DECISIONS}. */
  readonly decisions: readonly ScalingDecisionInfo[]
  readonly failedStarts: FailedStartsInfo
}

/** What of the status those may see who are no admins: nothing that another owner's functions have a part in. */
export type StatusSummary = Pick<StatusInfo, 'version' | 'state' | 'reasons' | 'uptimeMs' | 'sandbox'>

/** Most decisions in a {@link StatusInfo}. */
export const MAX_DECISIONS = 20

/** One decision about the number of hosts, with the figures that led to it. */
export interface ScalingDecisionInfo {
  /** ISO 8601. */
  readonly at: string
  readonly action: string
  readonly reason: string
  readonly hostsBefore: number
  readonly hostsAfter: number
  /** By name, with the unit in the name. */
  readonly figures: Readonly<Record<string, number>>
}

/** Host processes that ended before they were ready, or soon after. */
export interface FailedStartsInfo {
  /** Without a success between them. */
  readonly inRow: number
  /** 0 if no attempt is waited for. */
  readonly nextAttemptInMs: number
  /** How the last one ended. */
  readonly last?: string
}

/** `GET /readyz`: 200 if the state is `ready`, else 503. */
export interface ReadinessInfo {
  readonly status: ServerState
  readonly reasons: readonly string[]
  /** It has no part in the status: a server that insists on layers does not start without them. */
  readonly sandbox: SandboxInfo
}

/**
 * What a token lets its bearer do, with the functions of its owner alone:
 *
 * - `deploy`: deploy and delete functions, set and delete their secrets.
 * - `invoke`: call functions through the control plane.
 * - `read`: list functions, read logs, usage, records and bills, and the names of secrets.
 * - `admin`: all of it for every owner, and tokens, the audit log, the status of the server, enabling and disabling functions.
 */
export const TOKEN_SCOPES = ['deploy', 'invoke', 'read', 'admin'] as const
export type TokenScope = (typeof TOKEN_SCOPES)[number]

/** Longest life that a token can be given, in days. */
export const MAX_TOKEN_DAYS = 3_650

/** `POST /v1/tokens` */
export interface TokenRequest {
  /** Same rule as for the names of functions. */
  readonly owner: string
  readonly scopes: readonly TokenScope[]
  /** After how many days it expires. Absent: never. */
  readonly days?: number
}

/** A token, without what makes it one. */
export interface TokenInfo {
  readonly id: string
  readonly owner: string
  readonly scopes: readonly TokenScope[]
  /** ISO 8601. */
  readonly createdAt: string
  /** ISO 8601. Absent: it never expires. */
  readonly expiresAt?: string
  /** ISO 8601, to the minute. Absent: it was never used. */
  readonly lastUsedAt?: string
}

/** The answer to {@link TokenRequest}: the only time that the token is shown. */
export interface CreatedToken extends TokenInfo {
  /** What to send as `authorization: Bearer <token>`. */
  readonly token: string
}

/** `PUT /v1/functions/:name/secrets/:key` */
export interface SecretRequest {
  readonly value: string
}

/** A secret, without its value, which the control plane never gives. */
export interface SecretInfo {
  readonly key: string
  /** ISO 8601. */
  readonly createdAt: string
  /** ISO 8601. */
  readonly updatedAt: string
}

/** The answer to {@link SecretRequest}. */
export interface SetSecretInfo extends SecretInfo {
  /** The live revision, which has it. Absent: the function is not deployed yet. */
  readonly revision?: string
}

/** One change, or one access that was refused. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly time: string
  /** What was asked for, such as `deployFunction`: the name of the operation in the OpenAPI document. */
  readonly action: string
  /** What it was asked for: the name of a function, a secret as `function/KEY`, or the id of a token. */
  readonly subject?: string
  /** `ok`, or the code of the error. */
  readonly result: 'ok' | ErrorCode
  /** Who asked: the id of the token, or `operator` for the one of the data folder. Absent: there was no valid one. */
  readonly tokenId?: string
  /** Whose function, secret or token it is; of a refused access the owner of the token. */
  readonly owner?: string
  readonly remoteAddress: string
  /** What there is to say besides. */
  readonly note?: string
}

/** `GET /v1/audit` */
export interface AuditPage {
  /** The newest last. */
  readonly entries: readonly AuditEntry[]
  /** Entries that could not be written since the server started. */
  readonly lostEntries: number
}
