import type { HostState } from '@carpool/core'
import type { HostProcess, HostRole } from '../../src/pool/host-process.ts'

/** As much of a host process as those see that keep, replace and end them. */
export class FakeHost {
  readonly id: number
  role: HostRole = 'standby'
  isReady = false
  isGone = false
  isSilent = false
  inFlight = 0
  livedMs = 0
  servedMs = 0
  callsSent = 0
  servesSinceMs: number | undefined
  readonly calls: string[] = []
  readonly #untilReady = Promise.withResolvers<void>()

  constructor(id: number) {
    this.id = id
    this.#untilReady.promise.catch(() => {})
  }

  get ready(): Promise<void> {
    return this.#untilReady.promise
  }

  get state(): HostState {
    if (this.isGone) return 'gone'
    if (this.role !== 'serving' && this.role !== 'quarantine') return this.role
    return this.isReady ? 'ready' : 'starting'
  }

  get serves(): boolean {
    return this.role === 'serving' && !this.isGone
  }

  get isStandby(): boolean {
    return this.role === 'standby' && !this.isGone
  }

  get isToEnd(): boolean {
    return this.role === 'draining' || this.role === 'poisoned'
  }

  get takesCalls(): boolean {
    return (this.role === 'serving' || this.role === 'quarantine') && !this.isGone && this.isReady
  }

  promote(role: HostRole = 'serving'): void {
    this.role = role
    this.servesSinceMs = 0
  }

  standDown(): void {
    this.role = 'standby'
  }

  drain(role: HostRole = 'draining'): void {
    if (this.role !== 'poisoned') this.role = role
  }

  isDrained(): boolean {
    return this.role === 'draining' && this.inFlight === 0
  }

  stop(): void {
    this.calls.push('stop')
    this.role = 'draining'
  }

  kill(): void {
    this.calls.push('kill')
  }

  /** Its start was a success. */
  async becomesReady(): Promise<void> {
    this.isReady = true
    this.#untilReady.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }

  get asProcess(): HostProcess {
    return this as unknown as HostProcess
  }
}
