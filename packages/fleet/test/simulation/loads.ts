import type { FakeClock } from './fake-clock.ts'
import type { Call } from './settings.ts'
import type { SimulatedServer } from './simulated-server.ts'

/** Numbers from 0 to 1 that are the same in each run (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Calls that come at random, whatever becomes of those before them. */
export function arrivals(
  clock: FakeClock,
  server: SimulatedServer,
  options: { readonly perSecond: number; readonly fromMs?: number; readonly untilMs: number; readonly seed: number },
  call: () => Call,
): void {
  const random = randomFrom(options.seed)
  const next = (): void => {
    if (clock.nowMs >= options.untilMs) return
    server.arrive(call())
    clock.after((-Math.log(1 - random()) / options.perSecond) * 1000, next)
  }
  clock.after(options.fromMs ?? 0, next)
}

/** Clients that call again as soon as they are answered, and a little later if they are refused. */
export function clients(
  clock: FakeClock,
  server: SimulatedServer,
  options: { readonly count: number; readonly fromMs?: number; readonly untilMs: number; readonly retryMs?: number },
  call: () => Call,
): void {
  const next = (): void => {
    if (clock.nowMs >= options.untilMs) return
    const made = call()
    server.arrive({
      ...made,
      settled: (how, tookMs) => {
        made.settled?.(how, tookMs)
        clock.after(how === 'answered' ? 0.1 : (options.retryMs ?? 1000), next)
      },
    })
  }
  for (let n = 0; n < options.count; n++) clock.after((options.fromMs ?? 0) + n * 0.01, next)
}

/** The value below which a share of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? 0
}
