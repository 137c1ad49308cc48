import { startBenchServer, type BenchServer } from '../lib/bench-server.ts'
import { CALC_FOLDER, calcPath } from './functions.ts'
import { goodPerSecond } from '../lib/load/call-summary.ts'
import { runLoad } from '../lib/load/generator.ts'

export interface RateOptions {
  readonly paths: readonly string[]
  readonly clients: number
  readonly durationMs: number
}

/** Until then V8 compiles, and is not counted. */
const WARM_UP_MS = 1_500
const PEAK_MS = 3_000
const PEAK_CLIENTS = 8

/** Good answers per second in a closed loop, of each path. Clients that are refused wait as they are told. */
export async function closedLoopRates({ carpool }: BenchServer, { paths, clients, durationMs }: RateOptions): Promise<number[]> {
  const load = { kind: 'closed' as const, clients, durationMs: WARM_UP_MS + durationMs, heedsRetryAfter: true }
  const { calls, beganMs } = await runLoad({ origin: carpool.url, paths, load })
  const fromMs = beganMs + WARM_UP_MS
  return paths.map((_, index) =>
    goodPerSecond(
      calls.filter(({ path }) => path === index),
      fromMs,
      fromMs + durationMs,
    ),
  )
}

/** The same of all paths together. */
export async function closedLoopRate(server: BenchServer, options: RateOptions): Promise<number> {
  return (await closedLoopRates(server, options)).reduce((sum, rate) => sum + rate, 0)
}

/** The same of one host for a level of the example that calculates, on a server of its own. */
export async function oneHostPeak(level: number): Promise<number> {
  await using server = await startBenchServer({ flags: ['--max-hosts', '1'] })
  await server.carpool.deploy(CALC_FOLDER, 'calc')
  // Awaited here: the server goes with this block.
  return await closedLoopRate(server, { paths: [calcPath('calc', level)], clients: PEAK_CLIENTS, durationMs: PEAK_MS })
}
