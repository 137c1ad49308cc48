import { readFileSync } from 'node:fs'
import type { ScalingDecisionInfo } from '@carpool/core'
import { Caller } from '../lib/caller.ts'
import { progress } from '../lib/report.ts'
import { iterationsPerMs, warmUp, WORK_FILE, workUrl } from '../metering/work.ts'
import { startBenchServer, type BenchServer } from '../lib/bench-server.ts'
import { bundleOf } from '../lib/bundle.ts'
import { startGenerator } from '../lib/load/generator.ts'
import type { LoadResult } from '../lib/load/load-order.ts'
import { epochMs } from '../lib/load/timed-call.ts'
import { longestGapMs, type FleetSample } from '../lib/watch/fleet-sample.ts'
import type { PlannedCall, ReplayPlan } from './replay-plan.ts'

export interface Replayed {
  readonly load: LoadResult
  readonly samples: readonly FleetSample[]
  readonly decisions: readonly ScalingDecisionInfo[]
  readonly longestGapMs: number
}

const SAMPLE_INTERVAL_MS = 250
const DEPLOYED_TOGETHER = 4
/** Longer than any call of the data set. */
const LIMITS = { wallMs: 900_000, cpuMs: 900_000 }
/** A call works in pieces of at most this, and waits between them. */
const PIECE_MS = 20
const LEAD_MS = 500
/** Calls that were answered since the last look at the decisions: only the newest 20 are kept. */
const DECISIONS_EVERY_MS = 2_000

/** Deploys a function for each of the sample, and calls them as planned. */
export async function runReplay(plan: ReplayPlan, flags: readonly string[]): Promise<Replayed> {
  await using server = await startBenchServer({ flags })
  const perMs = await calibrate(server)
  progress(`deploying ${plan.functionNames.length} functions`)
  await deployAll(server, plan.functionNames)
  await server.untilSettled()
  const generator = await startGenerator({
    origin: server.carpool.url,
    paths: plan.calls.map((call) => pathOf(call, perMs)),
    load: { kind: 'open', dueMs: Float64Array.from(plan.calls, ({ dueMs }) => dueMs) },
  })
  progress(`replaying ${plan.calls.length} calls in ${Math.round(plan.durationMs / 1000)} s`)
  const decisions = new Map<string, ScalingDecisionInfo>()
  const looking = setInterval(
    () => void server.status().then((status) => collect(decisions, status.decisions)),
    DECISIONS_EVERY_MS,
  )
  const watch = await server.watch(SAMPLE_INTERVAL_MS)
  generator.begin(epochMs() + LEAD_MS)
  const load = await generator.result
  const samples = await watch.stop()
  clearInterval(looking)
  collect(decisions, (await server.status()).decisions)
  const ordered = [...decisions.values()].toSorted((a, b) => (a.at < b.at ? -1 : 1))
  return { load, samples, decisions: ordered, longestGapMs: longestGapMs(samples) }
}

/** How many rounds of the loop take 1 ms of CPU here. */
async function calibrate(server: BenchServer): Promise<number> {
  using caller = new Caller()
  const { url } = await server.carpool.deploy(WORK_FILE, 'calibration')
  await warmUp(caller, url)
  // Awaited here: the connections go with this block.
  return await iterationsPerMs(server.carpool, caller, url)
}

async function deployAll(server: BenchServer, names: readonly string[]): Promise<void> {
  const source = readFileSync(WORK_FILE, 'utf8')
  const left = [...names]
  const deployOn = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      await server.deployBundle(name, bundleOf(source, name), LIMITS)
    }
  }
  await Promise.all(Array.from({ length: DEPLOYED_TOGETHER }, deployOn))
}

function pathOf({ functionName, cpuMs, waitMs }: PlannedCall, perMs: number): string {
  const parts = 1 + Math.max(1, Math.ceil(cpuMs / PIECE_MS))
  const pauseMs = Math.round(waitMs / (parts - 1))
  return workUrl(`/${functionName}/`, { iterations: Math.round(cpuMs * perMs), parts, waitMs: [pauseMs, pauseMs] })
}

function collect(into: Map<string, ScalingDecisionInfo>, decisions: readonly ScalingDecisionInfo[]): void {
  for (const decision of decisions) into.set(`${decision.at} ${decision.action} ${decision.reason}`, decision)
}
