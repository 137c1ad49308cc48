export { backoffMs } from './backoff.ts'
export {
  AwaitedCall,
  Call,
  FROM_OUTSIDE,
  type CallChain,
  type CallHolder,
  type CallInit,
  type FinishedInvocation,
  type Invoke,
  type Slot,
} from './call.ts'
export {
  announcedLength,
  isBodiless,
  type AnswerSink,
  type BegunAnswer,
  type Upload,
  type UploadTaker,
} from './call-streams.ts'
export { type Clock, monotonicClock } from './clock.ts'
export {
  FUNCTION_STATES,
  HOST_STATES,
  MAX_DECISIONS,
  MAX_TOKEN_DAYS,
  TOKEN_SCOPES,
  type FunctionState,
  type HostState,
  type ServerState,
  type TokenScope,
} from './control-plane.ts'
export type {
  AuditEntry,
  AuditPage,
  CreatedToken,
  DeployRequest,
  DisableRequest,
  FailedStartsInfo,
  FunctionInfo,
  HostInfo,
  InvokeRequest,
  InvokeResponse,
  MissingLayersInfo,
  Percentiles,
  ReadinessInfo,
  SandboxInfo,
  ScalingDecisionInfo,
  SecretInfo,
  SecretRequest,
  ServerInfo,
  SetSecretInfo,
  StatusInfo,
  StatusSummary,
  TokenInfo,
  TokenRequest,
} from './control-plane-schemas.ts'
export { HOST_MEMORY, hostMemory, type HostMemory } from './host-memory.ts'
export { CarpoolError, ERRORS, isErrorCode, type ErrorCode, type Fault } from './errors.ts'
export { checkEnv, checkFunctionName, type HandlerForm, type Revision, type RevisionConfig } from './function.ts'
export type {
  FailedFetch,
  FetchedHead,
  FetchHead,
  FetchResult,
  HeaderList,
  HttpResponse,
  RequestHead,
  ResponseHead,
} from './http.ts'
export { execUs, START_KINDS, type InvocationRecord, type InvocationResult, type StartKind, type Trigger } from './invocation.ts'
export {
  FETCH_BODIES_BYTES,
  LIMIT_RANGES,
  MAX_FETCHES_PER_INVOCATION,
  MAX_SOCKETS_PER_GUEST,
  MAX_RESPONSE_HEAD,
  RESPONSE_HEADER_LIMITS,
  resolveLimits,
  STREAM_MESSAGE_BYTES,
  STREAM_PART_BYTES,
  STREAM_WINDOW_BYTES,
  type FunctionLimits,
} from './limits.ts'
export { jsonLine, type LogLevel, type LogLine } from './log-line.ts'
export { nearestName } from './nearest-name.ts'
export { NumberedTable } from './numbered-table.ts'
export type { NodeSupport, OpenSocket, ServerAdapter, SocketEvents } from './node-support.ts'
export { freeBytes, ownMemoryOf } from './own-memory.ts'
export { OUTCOMES, type FailedOutcome, type Outcome } from './outcome.ts'
export { PROBLEM_CONTENT_TYPE, problemOfError, problemOfOutcome, retryAfterSeconds, type Problem } from './problem.ts'
export { concurrencyLimitOfOwners } from './sharing/concurrency-limit.ts'
export { RoundRobin, type RoundRobinOptions } from './sharing/round-robin.ts'
export {
  INSTANCE_CONCURRENCY,
  NO_TOTALS,
  NO_USAGE,
  USAGE_GROUPS,
  type BackgroundUsage,
  type InvocationQuery,
  type InvocationUsage,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
  type UsageTotals,
} from './usage.ts'
export { FairOrder, Flow, NOBODY, type FairOrderOptions, type Holder } from './sharing/fair-order.ts'
export { SharedPool, type SharedPoolOptions } from './sharing/shared-pool.ts'
export {
  climb,
  KILL_POLICY,
  RUNGS,
  type Evidence,
  type HostEvidence,
  type KillPolicy,
  type Reason,
  type Rung,
  type Step,
} from './kill-ladder.ts'
export type { ConnectedSocket, SocketEnd, SocketTarget, TlsOptions } from './socket.ts'
export type { CallerSocket, FunctionSocket, MessageKind } from './web-socket.ts'
