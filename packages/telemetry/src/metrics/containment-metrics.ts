import { Counter, type Metric } from 'prom-client'

/** What was done about functions that harm host processes. */
export class ContainmentMetrics {
  readonly #poisoned = new Counter({
    name: 'carpool_hosts_poisoned_total',
    help: 'Host processes that were harmed and replaced, by how that was noticed.',
    labelNames: ['reason'],
    registers: [],
  })
  readonly #strikes = new Counter({
    name: 'carpool_function_strikes_total',
    help: 'Times that a function harmed a host process, or may have, by how the function stood afterwards.',
    labelNames: ['standing'],
    registers: [],
  })

  constructor() {
    for (const reason of ['stuck', 'gave-up', 'silent', 'memory']) this.#poisoned.inc({ reason }, 0)
    for (const standing of ['free', 'quarantined', 'disabled']) this.#strikes.inc({ standing }, 0)
  }

  get metrics(): readonly Metric[] {
    return [this.#poisoned, this.#strikes]
  }

  /** @param reason of the kill ladder's closed set */
  hostPoisoned(reason: string): void {
    this.#poisoned.inc({ reason })
  }

  /** @param standing of a closed set */
  struck(standing: string): void {
    this.#strikes.inc({ standing })
  }
}
