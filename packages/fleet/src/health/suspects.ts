import type { Reason } from '@carpool/core'
import { isCrash, type ProcessEnd } from '../pool/os-process.ts'

/** What harmed a host process. */
export interface HostHarm {
  readonly reason: Reason
  /** Functions that may have done it; not `isCertain`: or nobody. */
  readonly suspects: readonly string[]
  readonly isCertain: boolean
}

/**
 * The functions whose code may have brought a process down.
 * @param inLongEntries functions with an entry that had run for a while. If there are any, one of them did it: to fill a heap
 * takes a while
 * @param running functions of which calls were running, rather than waiting
 * @param takers functions that took its memory; they alone did it if that has run out
 */
export function suspectsOf(
  end: ProcessEnd,
  {
    inLongEntries,
    running,
    takers,
  }: { readonly inLongEntries: Iterable<string>; readonly running: Iterable<string>; readonly takers: Iterable<string> },
): string[] {
  if (end.isOutOfMemory === true) return [...takers]
  if (!isCrash(end)) return []
  const long = new Set(inLongEntries)
  return [...(long.size > 0 ? long : new Set(running))]
}

/** What isolates took longer ago than this did not bring the process to its end, in ms. */
const GROWN_MS = 2_000
/** Of those that took memory, the ones that hold at least this share of what the largest holds are suspected. */
const LARGE_SHARE = 0.5
/** And at least this share of the host's budget: if nobody does, what took it was not seen. */
const BUDGET_SHARE = 0.25

/** The functions that may harm one host process, or have. */
export class HostSuspects {
  readonly #longEntries = new Map<string, number>()
  /** What isolates held when they had last taken much. */
  readonly #grown = new Map<string, { readonly atMs: number; readonly heldBytes: number }>()
  readonly #attributed = new Set<string>()
  readonly #leastBytes: number
  #hasGivenUp = false

  /** @param budgetBytes of the host's memory; 0: whatever the machine has */
  constructor(budgetBytes: number) {
    this.#leastBytes = budgetBytes * BUDGET_SHARE
  }

  /** Functions with an entry that has run for a while. */
  get inLongEntries(): ReadonlySet<string> {
    return new Set(this.#longEntries.keys())
  }

  /**
   * V8 has given up on an isolate of a function, and its thread stands still with the locks that it holds: others may wait for
   * them without an end.
   */
  gaveUp(): void {
    this.#hasGivenUp = true
  }

  /** Of those that may have brought the process to a stop, the ones that nobody else has: none once it was given up on one. */
  stopped(functionNames: Iterable<string>): string[] {
    return this.#hasGivenUp ? [] : [...new Set(functionNames)]
  }

  /** An entry of a function has run for a while, or one that had has ended. */
  longEntry(functionName: string, change: 1 | -1): void {
    const count = (this.#longEntries.get(functionName) ?? 0) + change
    if (count > 0) this.#longEntries.set(functionName, count)
    else this.#longEntries.delete(functionName)
  }

  /** The isolate of a function has taken much memory, and holds so much now. */
  grown(functionName: string, heldBytes: number, nowMs: number): void {
    this.#grown.set(functionName, { atMs: nowMs, heldBytes })
  }

  /** The functions that took the process's memory, if it has just run out. */
  takers(nowMs: number): string[] {
    const lately = [...this.#grown].filter(([, { atMs }]) => nowMs - atMs <= GROWN_MS)
    const mostBytes = Math.max(0, ...lately.map(([, { heldBytes }]) => heldBytes))
    const leastBytes = Math.max(this.#leastBytes, mostBytes * LARGE_SHARE)
    return lately.filter(([, { heldBytes }]) => heldBytes >= leastBytes).map(([name]) => name)
  }

  /**
   * Harm to the process is attributed to functions.
   * @returns those that had none before: a function gets one strike for each process
   */
  attribute(functionNames: readonly string[]): string[] {
    const first = functionNames.filter((name) => !this.#attributed.has(name))
    for (const name of first) this.#attributed.add(name)
    return first
  }
}
