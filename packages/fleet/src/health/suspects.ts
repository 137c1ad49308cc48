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
 */
export function suspectsOf(
  end: ProcessEnd,
  { inLongEntries, running }: { readonly inLongEntries: Iterable<string>; readonly running: Iterable<string> },
): string[] {
  if (!isCrash(end)) return []
  const long = new Set(inLongEntries)
  return [...(long.size > 0 ? long : new Set(running))]
}

/** The functions that may harm one host process, or have. */
export class HostSuspects {
  readonly #longEntries = new Map<string, number>()
  readonly #attributed = new Set<string>()

  /** Functions with an entry that has run for a while. */
  get inLongEntries(): ReadonlySet<string> {
    return new Set(this.#longEntries.keys())
  }

  /** An entry of a function has run for a while, or one that had has ended. */
  longEntry(functionName: string, change: 1 | -1): void {
    const count = (this.#longEntries.get(functionName) ?? 0) + change
    if (count > 0) this.#longEntries.set(functionName, count)
    else this.#longEntries.delete(functionName)
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
