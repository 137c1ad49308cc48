/** What a host reports of the last 100 ms. */
export interface HostLimitSample {
  /** p90 of its run delays, in µs. */
  readonly p90Us: number
  /** Entries that ran. */
  readonly count: number
  /** Calls that ran there: neither answered nor waiting for a timer or a fetch. */
  readonly running: number
  /** Time of a monotonic clock, in ms. */
  readonly atMs: number
}

export interface HostLimitPolicy {
  readonly initial: number
  readonly min: number
  readonly max: number
  /** p90 run delay that is good, in ms. */
  readonly targetMs: number
}

/** How many invocations may run in a host, and what the next step needs to know. */
export interface HostLimit {
  /** A whole number. */
  readonly limit: number
  /** The same with its fraction, or small limits could not grow. */
  readonly exact: number
  /** When it was last judged, in ms; undefined at first. */
  readonly judgedAtMs: number | undefined
  /** What came since then and was too little to be judged. */
  readonly carried: { readonly count: number; readonly p90Us: number }
}

const NOTHING_CARRIED = { count: 0, p90Us: 0 }
const STEP_MS = 100
const MIN_SAMPLES = 5
/** After this long also fewer entries than that are judged, in ms. */
const MAX_CARRY_MS = 1_000
/** How much of a step is made at once. */
const SMOOTHING = 0.2
const MIN_GRADIENT = 0.25
const MAX_GRADIENT = 2
/** Share of the way back to the initial limit in each idle step: half of it in 3.5 s. */
const IDLE_DECAY = 0.02

export function initialHostLimit({ initial }: Pick<HostLimitPolicy, 'initial'>): HostLimit {
  return { limit: initial, exact: initial, judgedAtMs: undefined, carried: NOTHING_CARRIED }
}

/**
 * The limit for the next 100 ms: with g = target / p90, kept within 0.25 and 2,
 *
 *     limit' = 0.8 limit + 0.2 (g limit + sqrt(limit))
 *
 * This is the gradient of Envoy's adaptive concurrency and Netflix's Gradient2, on run delay instead of response time: a slow
 * upstream makes answers late, but only a short CPU makes what is ready wait. What simulation made us do otherwise than they
 * do, or than we first had it:
 *
 * - sqrt(limit) is added always, so under load p90 settles a little above the target, at target / (1 - 1 / sqrt(limit)). That
 *   is wanted: a host that is full must look delayed, or it would never count as saturated.
 * - g may fall to 0.25 (both: 0.5). With 0.5 the formula stands still at 4 and no lower limit could be reached.
 * - g may be 2 (Gradient2: 1). With 1 the limit grows by sqrt(limit) alone and takes 6 s from 4 to 64; with 2 it takes 1.2 s,
 *   and nothing swings.
 * - No growth while less than half of the limit runs: it would be growth without evidence.
 * - Fewer than 5 entries are no p90, so they are carried on to the next step, for at most 1 s. A limit that then falls does
 *   so by all the steps that were left out, or entries of 200 ms would keep a host over its limit for a minute.
 * - While nothing runs it goes back to the initial limit, by half in 3.5 s: the limit that one load needs is not that of the
 *   next one.
 */
export function nextHostLimit(state: HostLimit, sample: HostLimitSample, policy: HostLimitPolicy): HostLimit {
  const { atMs, running } = sample
  const { exact, carried, judgedAtMs = atMs - STEP_MS } = state
  const count = carried.count + sample.count
  if (count === 0 && running === 0) {
    const kept = (1 - IDLE_DECAY) ** ((atMs - judgedAtMs) / STEP_MS)
    return judged(policy.initial + kept * (exact - policy.initial), atMs, policy)
  }
  const p90Us = count === 0 ? 0 : (carried.count * carried.p90Us + sample.count * sample.p90Us) / count
  if (count === 0 || (count < MIN_SAMPLES && atMs - judgedAtMs < MAX_CARRY_MS)) {
    return { ...state, judgedAtMs, carried: { count, p90Us } }
  }
  const gradient = Math.min(Math.max((policy.targetMs * 1000) / Math.max(p90Us, 1), MIN_GRADIENT), MAX_GRADIENT)
  const next = (1 - SMOOTHING) * exact + SMOOTHING * (gradient * exact + Math.sqrt(exact))
  if (next > exact) return judged(running < exact / 2 ? exact : next, atMs, policy)
  const steps = Math.min(Math.max(1, Math.round((atMs - judgedAtMs) / STEP_MS)), MAX_CARRY_MS / STEP_MS)
  return judged(exact * (next / exact) ** steps, atMs, policy)
}

function judged(exact: number, atMs: number, { min, max }: HostLimitPolicy): HostLimit {
  const within = Math.min(Math.max(exact, min), max)
  return { limit: Math.floor(within), exact: within, judgedAtMs: atMs, carried: NOTHING_CARRIED }
}
