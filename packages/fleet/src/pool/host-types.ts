import type { HostLimitPolicy } from '../scaling/host-limit.ts'
import type { KillPolicy, Reason, Call, CarpoolError, InvocationResult, Revision } from '@carpool/core'
import type { Background, Fetch, HostCpu, Log, Setup } from '@carpool/wire'
import type { HostProcess } from './host-process.ts'
import type { HostCage } from './spawn-host.ts'

/** The code of a revision as a host needs it. */
export interface RevisionCode {
  readonly source: string
  readonly codeCache?: Uint8Array
  /** Given to the function besides its `env`, and read only when it is loaded. */
  readonly secrets?: Readonly<Record<string, string>>
}

/** How to start a host process. */
export interface HostProgram {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  /** The program itself, which the process reads on its standard input. */
  readonly input?: string
  /** What starts it with less than the server may do; absent: it is started as it is. */
  readonly cage?: HostCage
  readonly setup: Setup
  /** The guest runtime's script. */
  readonly runtime: string
}

/** What a host process is kept to. */
export interface HostPolicy {
  /** Longest time until it is ready, in ms. */
  readonly startTimeoutMs: number
  readonly limit: HostLimitPolicy
  /** Share of a core, or of the event loop's time, from which on it is busy. */
  readonly saturationPercent: number
  /** How long its load is remembered, in ms. */
  readonly historyMs: number
  readonly kill: KillPolicy
}

/** Told of calls on their way through the hosts. */
export interface CallListener {
  /** A host takes the call now. Called again if that host is lost and another takes it. */
  placed(call: Call): void
  /** A host has said how the call ended, or the host is gone, or the client has left before there was one. */
  answered(call: Call, result: InvocationResult): void
  /** No host takes it: `saturated` or `no-host` if there was none in time, `draining` if the fleet was closed meanwhile. */
  refused(call: Call, error: CarpoolError): void
}

export interface HostProcessListener {
  answered(host: HostProcess, call: Call, result: InvocationResult): void
  logged(log: Log, text: string): void
  /** A function fetches: answer with {@link HostProcess.settleFetch}. */
  fetchStarted(host: HostProcess, fetch: Fetch, head: string, body: Uint8Array): void
  fetchStopped(host: HostProcess, fetch: number): void
  /** A function used something while nobody waited for it. */
  usedInBackground(host: HostProcess, background: Background): void
  /** Where the CPU time of the process went so far. */
  usedCpu(host: HostProcess, cpu: HostCpu): void
  /** The process wrote to its own standard error: never user output. */
  complained(host: HostProcess, line: string): void
  /** It is to get nothing more, because what runs there harms it. */
  poisoned(host: HostProcess, harm: HostHarm): void
  /** A slot was given back, or there are more of them. */
  hasRoom(host: HostProcess): void
  /**
   * The process is gone and every call in it has been answered. Called once.
   * @param suspects functions whose code may have brought it down; none if somebody ended it
   * @param isCertain whether it must have been one of them
   */
  gone(host: HostProcess, how: string, suspects: readonly string[], isCertain: boolean): void
}

/** What harmed a host process. */
export interface HostHarm {
  readonly reason: Reason
  /** Functions that may have done it; not `isCertain`: or nobody. */
  readonly suspects: readonly string[]
  readonly isCertain: boolean
}

/** What a host needs to know of a revision. */
export type HostRevision = Pick<Revision, 'id' | 'functionName' | 'handlerExport' | 'limits' | 'env'> & {
  /** Its isolate stays while others leave. */
  readonly keepWarm?: boolean
}
