import type { AccessStore, AuditLog } from '@carpool/access'
import type { CarpoolError, Invoke, StatusInfo } from '@carpool/core'
import type { Ledger, Meter } from '@carpool/ledger'
import type { Registry } from '@carpool/registry'
import type { FunctionLogs, ServerMetrics } from '@carpool/telemetry'
import type { Deployer } from '../deploy/deployer.ts'

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
  readonly deployer: Pick<Deployer, 'deploy' | 'remove' | 'setSecret' | 'deleteSecret' | 'disable' | 'enable'>
  /** Whether a function runs in a host process of its own because of what it did. */
  readonly isQuarantined: (functionName: string) => boolean
  readonly invoke: Invoke
  readonly status: () => StatusInfo
  /** Address of the data plane, without a slash at the end. */
  readonly url: () => string
  /** The same of the control plane. */
  readonly adminUrl: () => string
  /** Longest time in which a client may take nothing of an answer that waits for it, in ms. */
  readonly answerTimeoutMs: number
  readonly maxBodyBytes: number
  readonly maxBundleBytes: number
  readonly onFault: (error: CarpoolError) => void
}
