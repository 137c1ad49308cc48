import type { HostCpu, Pulse } from '@carpool/wire'
import type { Guest } from '../isolates/guest.ts'
import type { ActiveInvocation } from '../calls/invocation.ts'
import type { Account } from './account.ts'
import type { Send } from '../send.ts'
import type { Batch } from '../scheduler/batch.ts'

export interface UsageReportParts {
  readonly send: Send
  readonly underWay: () => Iterable<ActiveInvocation>
}

/** The process has to have used this much to be worth a message, in µs: the report itself takes some. */
const MIN_REPORT_US = 20_000

/** Adds up what guests use besides invocations, and where the CPU time of the process went. */
export class UsageReport {
  readonly #parts: UsageReportParts
  readonly #guests = new Set<Guest>()
  /** CPU time of guests that are gone, in ns. */
  #goneNs = 0
  /** CPU time of measuring their memory, in ns. */
  #goneMemoryWatchNs = 0
  /** CPU time of making blank guests, in ns. */
  #blanksNs = 0
  #lastProcessUs = 0
  /** CPU time of isolates at the last look at what is under way; -1 if something ran. */
  #lookedAtUs = -1

  constructor(parts: UsageReportParts) {
    this.#parts = parts
  }

  /** Counts a blank guest from now on. */
  add(guest: Guest): void {
    this.#guests.add(guest)
    this.#blanksNs += guest.bootNs
  }

  /** The guests that have a function in them. */
  *loaded(): Iterable<Guest> {
    for (const guest of this.#guests) if (guest.isLoaded && !guest.disposed) yield guest
  }

  /** The isolate was disposed in this batch, which is charged as far as it is billed. */
  disposed(batch: Batch): void {
    this.#goneNs += batch.totalNs
  }

  /** Sends what has changed, if anything has. @returns guests whose background work has used more than it may */
  send(): Guest[] {
    const over = [...this.#guests].filter((guest) => this.#sendBackground(guest))
    const cpu = this.#cpu()
    const underWay = this.#changed(cpu.isolatesUs)
    if (cpu.processUs - this.#lastProcessUs < MIN_REPORT_US && underWay.length === 0) return over
    this.#lastProcessUs = cpu.processUs
    this.#parts.send({ type: 'pulse', cpu, underWay })
    return over
  }

  #sendBackground(guest: Guest): boolean {
    guest.chargeBetween()
    this.#sendOf(guest, guest.background)
    // Calls wait for it, or have brought it about, so it has no budget of its own.
    this.#sendOf(guest, guest.shared)
    if (!guest.disposed) return !guest.backgroundBudget.take(guest.background.everNs, guest.limits.cpuMs, performance.now())
    // Its thread may still leave it, and take some time for that.
    if (guest.batch !== undefined || !guest.isReleased) return false
    this.#guests.delete(guest)
    this.#goneNs += guest.totalNs
    this.#goneMemoryWatchNs += guest.memoryAccount.cpuNs
    return false
  }

  #sendOf({ revision, disposed }: Guest, account: Account): void {
    // Its sockets end with it.
    if (disposed) account.countSockets()
    const { cpuNs, ...rest } = account.take()
    const cpuUs = Math.floor(cpuNs / 1000)
    account.putBack(cpuNs - cpuUs * 1000)
    const { egressBytesOut, egressBytesIn, sockets, socketUs } = rest
    if (cpuUs + egressBytesOut + egressBytesIn + sockets + socketUs > 0) {
      this.#parts.send({ type: 'background', revision, cpuUs, ...rest })
    }
  }

  /**
   * What has used CPU since it was reported last. Thousands may wait, so they are not looked through while nothing runs: at rest
   * that would be most of what the process does.
   * @param isolatesUs CPU time of what has run in isolates
   */
  #changed(isolatesUs: number): Pulse['underWay'] {
    const changed: Array<Pulse['underWay'][number]> = []
    if (isolatesUs === this.#lookedAtUs) return changed
    this.#lookedAtUs = this.#guests.values().some(({ batch }) => batch !== undefined) ? -1 : isolatesUs
    for (const invocation of this.#parts.underWay()) {
      const { cpuNs } = invocation.account
      if (cpuNs === invocation.reportedNs) continue
      invocation.reportedNs = cpuNs
      changed.push([invocation.number, invocation.usage])
    }
    return changed
  }

  #cpu(): HostCpu {
    const whole = process.cpuUsage()
    const loop = process.threadCpuUsage()
    let isolatesNs = this.#goneNs + this.#blanksNs
    let memoryWatchNs = this.#goneMemoryWatchNs
    for (const guest of this.#guests) {
      isolatesNs += guest.totalNs
      memoryWatchNs += guest.memoryAccount.cpuNs
    }
    return {
      processUs: whole.user + whole.system,
      loopUs: loop.user + loop.system,
      isolatesUs: Math.round(isolatesNs / 1000),
      blanksUs: Math.round(this.#blanksNs / 1000),
      memoryWatchUs: Math.round(memoryWatchNs / 1000),
    }
  }
}
