/** Weight of the newest call. */
const SMOOTHING = 0.2
/** What a call costs in the host around its isolate, in ms, as measured. */
const AROUND_MS = 0.01

/** What calls of each function cost lately, in ms of CPU: what fairness between functions and a guess at a host's backlog go by. */
export class CpuCosts {
  readonly #meanMs = new Map<string, number>()

  used(functionName: string, usedMs: number): void {
    const cpuMs = usedMs + AROUND_MS
    const meanMs = this.#meanMs.get(functionName)
    this.#meanMs.set(functionName, meanMs === undefined ? cpuMs : meanMs + (cpuMs - meanMs) * SMOOTHING)
  }

  /** Undefined if none has been answered yet. */
  meanMs(functionName: string): number | undefined {
    return this.#meanMs.get(functionName)
  }

  forget(functionName: string): void {
    this.#meanMs.delete(functionName)
  }
}
