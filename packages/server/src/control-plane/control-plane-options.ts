import type { AccessStore, AuditLog, SecretHolder } from '@carpool/access'
import type { CarpoolError, DeployRequest, Invoke, Revision, ServerInfo, StatusInfo } from '@carpool/core'
import type { FunctionLogs, ServerMetrics } from '@carpool/telemetry'
import type { Ledger, Meter } from '@carpool/ledger'
import type { Registry } from '@carpool/registry'

/** What the control plane reads, and what it can have done. */
export interface ControlPlaneOptions {
  readonly version: string
  /** The token of the data folder, for the operator of this machine. */
  readonly operatorToken: string
  readonly access: AccessStore
  readonly audit: AuditLog
  readonly registry: Registry
  readonly meter: Meter
  readonly logs: FunctionLogs
  readonly ledger: Ledger
  readonly metrics: ServerMetrics
  /** Who may read `/metrics`: everybody who reaches the control plane, or admins. */
  readonly metricsAccess: 'open' | 'token'
  /** @throws CarpoolError `name-taken` if the name is another owner's, and what is wrong with the code */
  readonly deploy: (functionName: string, owner: string, request: DeployRequest) => Promise<Revision>
  /** Takes a function out of service. @throws CarpoolError `not-found` */
  readonly remove: (functionName: string, owner: string) => Promise<void>
  /** Gives the revision that has it; undefined if the function is not deployed. @throws CarpoolError `name-taken` and what a deploy does */
  readonly setSecret: (holder: SecretHolder, key: string, value: string) => Promise<Revision | undefined>
  /** @throws CarpoolError `secret-not-found` and what a deploy does */
  readonly deleteSecret: (holder: SecretHolder, key: string) => Promise<unknown>
  /**
   * Refuses the calls of a function until it is enabled, and ends what runs of it.
   * @param reason completes "it is disabled because …"
   * @throws CarpoolError `not-found`
   */
  readonly disable: (functionName: string, reason: string) => void
  /** Takes the calls of a function again that was disabled. @throws CarpoolError `not-found` */
  readonly enable: (functionName: string) => void
  /** Whether a function runs in a host process of its own because of what it did. */
  readonly isQuarantined: (functionName: string) => boolean
  readonly invoke: Invoke
  readonly serverInfo: () => ServerInfo
  readonly status: () => StatusInfo
  /** Address of the data plane, without a slash at the end. */
  readonly dataUrl: () => string
  readonly maxBodyBytes: number
  readonly maxBundleBytes: number
  readonly onFault: (error: CarpoolError) => void
}
