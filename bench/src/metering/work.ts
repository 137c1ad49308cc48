import { fileURLToPath } from 'node:url'
import type { InvocationRecord } from '@carpool/core'
import { failureLines, isOk, type Caller, type CallResult } from '../lib/caller.ts'
import type { CarpoolServer } from '../lib/carpool-server.ts'
import { median } from '../lib/statistics.ts'

/** The function that works for as many iterations as it is told to. */
export const WORK_FILE = fileURLToPath(new URL('work.js', import.meta.url))

export interface WorkShape {
  readonly iterations: number
  /** Into how many parts the iterations fall, with waits between them. */
  readonly parts: number
  /** Shortest and longest wait. */
  readonly waitMs: readonly [number, number]
}

export function workUrl(url: string, { iterations, parts, waitMs }: WorkShape): string {
  const query = { iterations: String(iterations), parts: String(parts), wait: waitMs.join('-') }
  return `${url}?${new URLSearchParams(query).toString()}`
}

const WARM_UP_ITERATIONS = 100
const WARM_UP_CALLS = 100

/** Has V8 compile what is around the loop, or the first calls would be slower than the rest. */
export async function warmUp(caller: Caller, url: string): Promise<void> {
  const shape: WorkShape = { iterations: WARM_UP_ITERATIONS, parts: 4, waitMs: [0, 0] }
  demandOk(await caller.callInTurns(workUrl(url, shape), WARM_UP_CALLS, 4))
}

/** Makes calls one after the other, and gives their records, newest first. */
export async function callAlone(
  server: CarpoolServer,
  caller: Caller,
  url: string,
  count: number,
): Promise<readonly InvocationRecord[]> {
  return recorded(server, nameIn(url), count, () => caller.callInTurns(url, count, 1))
}

/**
 * Gives the records of calls of one function, newest first.
 * @throws Error if a call failed or there are not as many records as calls
 */
export async function recorded(
  server: CarpoolServer,
  functionName: string,
  limit: number,
  make: () => Promise<readonly CallResult[]>,
): Promise<readonly InvocationRecord[]> {
  const sinceMs = Date.now()
  const results = await make()
  demandOk(results)
  const records = await server.invocations({ functionName, sinceMs, limit })
  if (records.length !== results.length) {
    throw new Error(`${functionName}: ${results.length} calls, but ${records.length} records.`)
  }
  return records
}

const CALIBRATION_ITERATIONS = 20_000
const CALIBRATION_CALLS = 9

/**
 * How many iterations take 1 ms of CPU, by the records of calls that had the server to themselves; without what a call takes
 * besides.
 */
export async function iterationsPerMs(server: CarpoolServer, caller: Caller, url: string): Promise<number> {
  const cpuMs = async (iterations: number): Promise<number> => {
    const records = await callAlone(server, caller, workUrl(url, { iterations, parts: 1, waitMs: [0, 0] }), CALIBRATION_CALLS)
    return median(records.map(({ cpuUs }) => cpuUs)) / 1000
  }
  return CALIBRATION_ITERATIONS / ((await cpuMs(CALIBRATION_ITERATIONS)) - (await cpuMs(0)))
}

/** @throws Error that says what went wrong */
export function demandOk(results: readonly CallResult[]): void {
  if (!results.every(isOk)) throw new Error(`Calls failed:\n${failureLines(results).join('\n')}`)
}

function nameIn(url: string): string {
  return new URL(url).pathname.split('/')[1] ?? ''
}
