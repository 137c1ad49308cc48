import type { Admission } from '@carpool/admission'
import type { SandboxInfo, StatusInfo } from '@carpool/core'
import type { Fleet } from '@carpool/fleet'
import type { GatewayPhase } from '@carpool/gateway'
import type { Ledger } from '@carpool/ledger'
import type { FleetReading, ServerMetrics } from '@carpool/telemetry'

interface ServerStatusParts {
  readonly version: string
  readonly sandbox: SandboxInfo
  readonly fleet: Fleet
  readonly admission: Admission
  readonly metrics: Pick<ServerMetrics, 'shedCounts' | 'streams'>
  readonly ledger: Pick<Ledger, 'unavailable'>
}

/** Knows where the server is in its life, and how it fares: for `/readyz`, `carpool status` and the metrics. */
export class ServerStatus {
  readonly #parts: ServerStatusParts
  #phase: 'starting' | 'open' | 'draining' = 'starting'
  #gatewayPhase: GatewayPhase = 'open'

  constructor(parts: ServerStatusParts) {
    this.#parts = parts
  }

  /** What data planes do with requests. */
  get gatewayPhase(): GatewayPhase {
    return this.#gatewayPhase
  }

  /** The hosts are ready. */
  open(): void {
    if (this.#phase === 'starting') this.#phase = 'open'
  }

  /** The server shuts down. */
  drain(gatewayPhase: Exclude<GatewayPhase, 'open'>): void {
    this.#phase = 'draining'
    this.#gatewayPhase = gatewayPhase
  }

  read(): StatusInfo {
    const { version, sandbox, fleet, admission, metrics } = this.#parts
    const { cores, busyCores } = fleet.machineLoad
    return {
      version,
      ...this.#state(),
      uptimeMs: Math.round(process.uptime() * 1000),
      sandbox,
      cores,
      machineBusyCores: busyCores,
      hosts: fleet.hosts,
      inFlight: admission.inFlight,
      queued: fleet.queued,
      open: metrics.streams.totals,
      shed: metrics.shedCounts,
      decisions: fleet.decisions,
      failedStarts: fleet.failedStarts,
    }
  }

  readFleet(): FleetReading {
    const { fleet, admission } = this.#parts
    const { cores: machineCores, busyCores: machineBusyCores } = fleet.machineLoad
    return { hosts: fleet.hosts, inFlight: admission.inFlight, queued: fleet.queued, machineCores, machineBusyCores }
  }

  #state(): Pick<StatusInfo, 'state' | 'reasons'> {
    const { fleet } = this.#parts
    if (this.#phase === 'draining') return { state: 'draining', reasons: ['The server is shutting down.'] }
    const reasons = this.#hindrances()
    if (reasons.length > 0) return { state: this.#phase === 'starting' ? 'starting' : 'not-ready', reasons }
    if (this.#phase === 'starting') return { state: 'starting', reasons: ['The host processes are starting.'] }
    if (fleet.isShedding) {
      return { state: 'saturated', reasons: [`The CPU is full, and ${fleet.queued} calls wait for a place.`] }
    }
    return { state: 'ready', reasons: [] }
  }

  #hindrances(): string[] {
    const { fleet, ledger } = this.#parts
    const reasons: string[] = []
    if (ledger.unavailable !== undefined) reasons.push('Usage cannot be recorded, so nothing is run.')
    if (!fleet.isReady) {
      const { inRow, nextAttemptInMs, last } = fleet.failedStarts
      reasons.push(
        inRow === 0
          ? 'No host process is ready.'
          : `No host process is ready: ${inRow} in a row ended early, the last one by ${last}. The next one starts in ${nextAttemptInMs} ms.`,
      )
    }
    return reasons
  }
}
