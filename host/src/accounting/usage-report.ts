import type { HostCpu } from '@carpool/wire'
import type { Guest } from '../isolates/guest.ts'
import type { ActiveInvocation } from '../calls/invocation-table.ts'
import { usageOf } from '../calls/invocations.ts'
import type { Send } from '../send.ts'
import type { Stay } from '../scheduler/stay.ts'

export interface UsageReportParts {
  readonly send: Send
  readonly underWay: () => Iterable<ActiveInvocation>
}

/** Adds up what guests use besides invocations, and where the CPU time of the process went. */
export class UsageReport {
  readonly #parts: UsageReportParts
  readonly #guests = new Set<Guest>()
  readonly #told = new WeakMap<ActiveInvocation, number>()
  #goneNs = 0
  #goneMemoryWatchNs = 0
  #blanksNs = 0
  #lastProcessUs = 0

  constructor(parts: UsageReportParts) {
    this.#parts = parts
  }

  /** A blank guest was made; from now on it is looked after. */
  made(guest: Guest): void {
    this.#guests.add(guest)
    this.#blanksNs += guest.bootNs
  }

  /** The guests that have a function in them. */
  *loaded(): Iterable<Guest> {
    for (const guest of this.#guests) if (guest.isLoaded && !guest.disposed) yield guest
  }

  /** A stay has ended with the isolate. */
  lost(stay: Stay): void {
    this.#goneNs += stay.totalNs
  }

  /** Tells the server what is new, if anything is. @returns guests whose background work has used more than it may */
  tell(): Guest[] {
    const over = [...this.#guests].filter((guest) => this.#tellBackground(guest))
    const cpu = this.#cpu()
    const underWay = [...this.#parts.underWay()].filter((invocation) => this.#isNews(invocation))
    if (cpu.processUs - this.#lastProcessUs < NEWS_US && underWay.length === 0) return over
    this.#lastProcessUs = cpu.processUs
    this.#parts.send({
      type: 'pulse',
      cpu,
      underWay: underWay.map((invocation) => [invocation.number, usageOf(invocation)] as const),
    })
    return over
  }

  #tellBackground(guest: Guest): boolean {
    const { cpuNs, egressBytesOut, egressBytesIn } = guest.background.take()
    const cpuUs = Math.floor(cpuNs / 1000)
    guest.background.charge(cpuNs - cpuUs * 1000)
    if (cpuUs + egressBytesOut + egressBytesIn > 0) {
      this.#parts.send({ type: 'background', revision: guest.revision, cpuUs, egressBytesOut, egressBytesIn })
    }
    if (!guest.disposed) return !guest.backgroundBudget.take(cpuUs / 1000, guest.limits.cpuMs, performance.now())
    if (guest.stay !== undefined) return false
    this.#guests.delete(guest)
    this.#goneNs += guest.chargedNs
    this.#goneMemoryWatchNs += guest.memoryAccount.cpuNs
    return false
  }

  #isNews(invocation: ActiveInvocation): boolean {
    const { cpuNs } = invocation.account
    if (this.#told.get(invocation) === cpuNs) return false
    this.#told.set(invocation, cpuNs)
    return cpuNs > 0
  }

  #cpu(): HostCpu {
    const whole = process.cpuUsage()
    const loop = process.threadCpuUsage()
    let isolatesNs = this.#goneNs + this.#blanksNs
    let memoryWatchNs = this.#goneMemoryWatchNs
    for (const guest of this.#guests) {
      isolatesNs += guest.chargedNs
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

/** The process has to have used this much to be worth a message, in µs: the look itself takes some. */
const NEWS_US = 20_000
