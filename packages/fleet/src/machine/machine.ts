import { availableParallelism, cpus } from 'node:os'
import { findCpuQuota, readSystemFile, type CpuQuota, type ReadSystemFile } from './cgroup.ts'

export interface MachineLoad {
  /** Cores that this process and its children may use; a fraction where a control group says so. */
  readonly cores: number
  /** Of these, the ones that are not free, whoever uses them, over the last second or so. */
  readonly busyCores: number
  /** Memory that can still be had without swapping, in bytes; by the control group's limit where there is one. */
  readonly freeBytes: number
}

interface Reading {
  readonly atMs: number
  readonly busyMs: number
  readonly quotaUsedUs: number | undefined
}

/** Shortest time that a load is told of, in ms: the system counts in steps of 10 ms for each core. */
const SPAN_MS = 1_000

/** The part of the machine that this process has: by its CPU affinity and its control groups. */
export class Machine {
  readonly #allowed: ReadonlySet<number> | undefined
  readonly #quota: CpuQuota | undefined
  readonly #readings: Reading[] = []

  constructor(read: ReadSystemFile = readSystemFile) {
    this.#allowed = allowedCpus(read('/proc/self/status'))
    this.#quota = findCpuQuota(read)
  }

  get cores(): number {
    return Math.min(this.#cpus, availableParallelism(), this.#quota?.cores ?? Number.POSITIVE_INFINITY)
  }

  /** Whole cores, at least one: as many hosts make sense. */
  get wholeCores(): number {
    return Math.max(1, Math.floor(this.cores))
  }

  /** To be asked a few times a second: a load is told of the time between then and now. */
  load(nowMs: number): MachineLoad {
    const now: Reading = { atMs: nowMs, busyMs: busyMs(this.#allowed), quotaUsedUs: this.#quota?.usedUs() }
    const readings = this.#readings
    readings.push(now)
    while (readings.length > 2 && nowMs - readings[1]!.atMs >= SPAN_MS) readings.shift()
    const before = readings[0]!
    const spanMs = Math.max(nowMs - before.atMs, 1)
    const free = this.#cpus - (now.busyMs - before.busyMs) / spanMs
    const freeOfQuota =
      this.#quota === undefined || now.quotaUsedUs === undefined || before.quotaUsedUs === undefined
        ? Number.POSITIVE_INFINITY
        : this.#quota.cores - (now.quotaUsedUs - before.quotaUsedUs) / 1000 / spanMs
    const busyCores = this.cores - Math.min(free, freeOfQuota)
    return { cores: this.cores, busyCores: Math.min(Math.max(0, busyCores), this.cores), freeBytes: process.availableMemory() }
  }

  /** CPUs that this process may run on, shared with whoever else may. */
  get #cpus(): number {
    return this.#allowed?.size ?? cpus().length
  }
}

/** CPU time that was not idle, of the CPUs that this process may use, in ms. */
function busyMs(allowed: ReadonlySet<number> | undefined): number {
  let sum = 0
  for (const [index, { times }] of cpus().entries()) {
    if (allowed === undefined || allowed.has(index)) sum += times.user + times.nice + times.sys + times.irq
  }
  return sum
}

/** @param status of a process, as the system has it under /proc */
function allowedCpus(status: string | undefined): ReadonlySet<number> | undefined {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status ?? '')?.[1]
  if (list === undefined) return undefined
  const allowed = new Set<number>()
  for (const range of list.split(',')) {
    const [first = Number.NaN, last = first] = range.split('-').map(Number)
    for (let cpu = first; cpu <= last; cpu++) allowed.add(cpu)
  }
  return allowed.size === 0 ? undefined : allowed
}
