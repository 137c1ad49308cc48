import { setTimeout as delay } from 'node:timers/promises'
import { Caller } from '../lib/caller.ts'
import type { BenchServer } from '../lib/bench-server.ts'
import { evenArrivals } from '../lib/load/arrivals.ts'
import { startGenerator } from '../lib/load/generator.ts'
import type { Call, LoadOrder } from '../lib/load/load-order.ts'
import { epochMs } from '../lib/load/timed-call.ts'
import { clientEnd, type ClientCall } from './agreement.ts'
import { handlerBundle } from './functions.ts'
import { deployNeighbour, type Neighbour } from './neighbour.ts'
import { EVIL, goodFunctions, LEFT, STUCK } from './soak-functions.ts'

const GOOD_PER_SECOND = 100
const EVIL_PER_SECOND = 4
const LEFT_PER_SECOND = 5
const LEAVE_AFTER_MS = 50
const LEAD_MS = 100
const PATTERN = 10
/** So many calls until the same come again, with other numbers for the neighbour. */
const ROUND_OF_CALLS = 500

/** The mix of the soak. */
export interface SoakTraffic {
  /**
   * Sends it for a while, and waits for the answers. @param stuckEveryMs how often a function is deployed and called that takes
   * its host with it
   */
  run(durationMs: number, stuckEveryMs: number): Promise<SoakCalls>
}

export interface SoakCalls {
  readonly all: readonly ClientCall[]
  readonly good: readonly Call[]
}

/** Deploys all functions of the soak. */
export async function deploySoak(server: BenchServer, upstreamUrl: string): Promise<SoakTraffic> {
  const neighbour = await deployNeighbour(server)
  for (const { name, body, limits } of [...goodFunctions(upstreamUrl), ...EVIL, LEFT]) {
    await server.deployBundle(name, handlerBundle(body), limits)
  }
  let stuckCalls = 0
  const run = async (durationMs: number, stuckEveryMs: number): Promise<SoakCalls> => {
    const orders = {
      good: goodOrder(server, neighbour, upstreamUrl, durationMs),
      evil: orderOf(
        server,
        EVIL.map(({ name }) => `/${name}/`),
        EVIL_PER_SECOND,
        durationMs,
      ),
      left: { ...orderOf(server, [`/${LEFT.name}/`], LEFT_PER_SECOND, durationMs), leaveAfterMs: LEAVE_AFTER_MS },
    }
    const good = await startGenerator(orders.good)
    const others = [
      { order: orders.evil, generator: await startGenerator(orders.evil) },
      { order: orders.left, generator: await startGenerator(orders.left) },
    ]
    const beginMs = epochMs() + LEAD_MS
    for (const generator of [good, ...others.map((other) => other.generator)]) generator.begin(beginMs)
    const stuck: ClientCall[] = []
    const endMs = beginMs + durationMs
    for (let atMs = beginMs + stuckEveryMs / 2; atMs < endMs; atMs += stuckEveryMs) {
      await delay(Math.max(0, atMs - epochMs()))
      // Strikes count for a name: under a new one it is a function that nobody knows yet.
      stuck.push(await callStuck(server, `stuck-${++stuckCalls}`))
    }
    const { calls } = await good.result
    const seen = [stuck, clientCalls(orders.good, calls)]
    for (const { order, generator } of others) seen.push(clientCalls(order, (await generator.result).calls))
    return { all: seen.flat(), good: calls }
  }
  return { run }
}

function orderOf(server: BenchServer, paths: readonly string[], callsPerSecond: number, durationMs: number): LoadOrder {
  const load = { kind: 'open', dueMs: evenArrivals([{ callsPerSecond, durationMs }]) } as const
  return { origin: server.carpool.url, paths, load, keepsIds: true }
}

function goodOrder(server: BenchServer, neighbour: Neighbour, upstreamUrl: string, durationMs: number): LoadOrder {
  const pattern = goodFunctions(upstreamUrl).flatMap(({ name, ofTen, answer }) =>
    Array.from({ length: ofTen }, () => ({ path: `/${name}/`, body: answer ?? '' })),
  )
  const { paths, bodies = [] } = neighbour.order({ callsPerSecond: 1, durationMs })
  const calls = Array.from(
    { length: ROUND_OF_CALLS },
    (_, call) => pattern[call % PATTERN] ?? { path: paths[call] ?? '', body: bodies[call] ?? '' },
  )
  return {
    ...orderOf(
      server,
      calls.map(({ path }) => path),
      GOOD_PER_SECOND,
      durationMs,
    ),
    bodies: calls.map(({ body }) => body),
  }
}

function clientCalls({ paths }: LoadOrder, calls: readonly Call[]): ClientCall[] {
  return calls.map((call) => ({
    functionName: paths[call.path]?.split('/')[1] ?? '',
    ...(call.id !== undefined && { id: call.id }),
    end: clientEnd(call),
  }))
}

/** Deploys a function that cannot be interrupted, calls it once and deletes it. */
async function callStuck(server: BenchServer, name: string): Promise<ClientCall> {
  await server.deployBundle(name, handlerBundle(STUCK.body), STUCK.limits)
  using caller = new Caller()
  const { status, body, error } = await caller.call(`${server.carpool.url}/${name}/`)
  await server.deleteFunction(name)
  if (error !== undefined || status === 200) return { functionName: name, end: error ?? 'ok' }
  const { code, invocationId } = JSON.parse(body) as { code: string; invocationId?: string }
  return { functionName: name, end: code, ...(invocationId !== undefined && { id: invocationId }) }
}
