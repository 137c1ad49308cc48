/**
 * Whether calls of a function are taken:
 *
 * - `active`: they are.
 * - `quarantined`: they are, but in a host process of its own, because its code took down others.
 * - `disabled`: they are refused until an operator enables it.
 */
export const FUNCTION_STATES = ['active', 'quarantined', 'disabled'] as const
export type FunctionState = (typeof FUNCTION_STATES)[number]

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

/**
 * The state of the server as a whole. Only a `ready` one is ready for `/readyz`.
 *
 * - `saturated`: the CPU is full, and calls wait so long that some are refused.
 * - `not-ready`: for the reasons that the status gives.
 */
export const SERVER_STATES = ['starting', 'ready', 'saturated', 'draining', 'not-ready'] as const
export type ServerState = (typeof SERVER_STATES)[number]

/** Most decisions in a status. */
export const MAX_DECISIONS = 20

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
