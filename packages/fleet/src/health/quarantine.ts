import { backoffMs } from '@carpool/core'
import type { HostProcess } from '../pool/host-process.ts'

export interface QuarantineOptions {
  /** Most processes; when there are more functions in quarantine, they share. */
  readonly maxHosts: number
  /** Starts a process. @throws CarpoolError `no-host` */
  readonly start: () => HostProcess
}

/** A process that nobody has called for so long ends, in ms. */
const IDLE_MS = 60_000
const MAX_RETRY_DELAY_MS = 10_000

interface Cell {
  readonly host: HostProcess
  readonly functions: Set<string>
  usedAtMs: number
}

/** Host processes for functions that have harmed others: each in one of its own, which is started when it is called. */
export class Quarantine {
  readonly #options: QuarantineOptions
  readonly #cells = new Set<Cell>()
  #failures = 0
  #retryAtMs = 0
  #isClosed = false

  constructor(options: QuarantineOptions) {
    this.#options = options
  }

  get hosts(): HostProcess[] {
    return [...this.#cells].map(({ host }) => host)
  }

  /** The function that a process was started for. */
  functionIn(host: HostProcess): string | undefined {
    const [first] = [...this.#cells].find((cell) => cell.host === host)?.functions ?? []
    return first
  }

  /** The processes that take calls of the function; one is started if there is none. */
  readyFor(functionName: string): HostProcess[] {
    const cell = this.#cellOf(functionName) ?? this.#open(functionName)
    if (cell === undefined) return []
    cell.usedAtMs = performance.now()
    return cell.host.takesCalls ? [cell.host] : []
  }

  /** Ends the processes that nobody has called for a while. Called four times a second. */
  upkeep(nowMs: number): void {
    for (const { host, usedAtMs } of this.#cells) {
      if (host.inFlight > 0 || nowMs - usedAtMs < IDLE_MS || host.isToEnd) continue
      host.stop()
    }
  }

  /** @returns whether it was one of these */
  gone(host: HostProcess): boolean {
    const cell = [...this.#cells].find((one) => one.host === host)
    if (cell === undefined) return false
    this.#cells.delete(cell)
    return true
  }

  close(): void {
    this.#isClosed = true
  }

  #cellOf(functionName: string): Cell | undefined {
    return [...this.#cells].find(({ host, functions }) => functions.has(functionName) && !host.isToEnd && host.state !== 'gone')
  }

  #open(functionName: string): Cell | undefined {
    if (this.#isClosed) return undefined
    const open = [...this.#cells].filter(({ host }) => !host.isToEnd && host.state !== 'gone')
    if (open.length >= this.#options.maxHosts) {
      const [emptiest] = open.toSorted((a, b) => a.functions.size - b.functions.size)
      emptiest?.functions.add(functionName)
      return emptiest
    }
    const nowMs = performance.now()
    if (nowMs < this.#retryAtMs) return undefined
    try {
      const cell = { host: this.#options.start(), functions: new Set([functionName]), usedAtMs: nowMs }
      cell.host.promote('quarantine')
      this.#cells.add(cell)
      this.#failures = 0
      return cell
    } catch {
      // Calls that wait are refused at their deadline; until then the start is tried again.
      this.#retryAtMs = nowMs + backoffMs(++this.#failures + 1, MAX_RETRY_DELAY_MS)
      return undefined
    }
  }
}
