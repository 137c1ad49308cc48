import t from 'tap'
import { decideRelief, NO_PRESSURE } from '../src/limits/memory.ts'
import { IsolatePool } from '../src/isolates/isolate-pool.ts'
import { FakeIsolate, MB } from './support/fake-pool.ts'

const TICK_MS = 250
const BASE_BYTES = 100 * MB
const HEAP_BYTES = 5 * MB

interface Scenario {
  readonly budgetBytes: number
  readonly functions: number
  readonly seconds: number
  /** Calls of one second, of functions by number. Each call ends at once. */
  readonly callsAt: (second: number) => readonly number[]
  /** How much of what an isolate held is ever returned to the system; the rest is used for the next isolates. */
  readonly returnedShare: number
  /** Of what is to be returned and was not, how much is each second. */
  readonly returnedEachSecond: number
}

interface Run {
  readonly rssBytes: number[]
  readonly evictedAtSecond: number[]
  readonly evicted: number
  readonly made: number
  readonly helplessTold: number
}

/** A host whose RSS follows what its isolates hold late and in part: the policy and the pool are the real ones. */
async function simulate({ budgetBytes, functions, seconds, callsAt, returnedShare, returnedEachSecond }: Scenario): Promise<Run> {
  let neededBytes = BASE_BYTES
  let freeInProcessBytes = 0
  let toReturnBytes = 0
  let made = 0
  const load = async (revision: string): Promise<FakeIsolate> => {
    made++
    const isolate = new FakeIsolate(revision, HEAP_BYTES)
    const reused = Math.min(HEAP_BYTES, freeInProcessBytes)
    freeInProcessBytes -= reused
    neededBytes += HEAP_BYTES
    return isolate
  }
  const pool = new IsolatePool({ load, maxIsolates: functions, lingerMs: 0 })
  const run = { rssBytes: [] as number[], evictedAtSecond: [] as number[], evicted: 0, helplessTold: 0 }
  let memory = NO_PRESSURE
  for (let atMs = 0; atMs < seconds * 1000; atMs += TICK_MS) {
    if (atMs % 1000 === 0) for (const call of callsAt(atMs / 1000)) (await pool.acquire(`f${call}`)).release()
    const returned = toReturnBytes * (1 - (1 - returnedEachSecond) ** (TICK_MS / 1000))
    toReturnBytes -= returned
    const rssBytes = neededBytes + freeInProcessBytes + toReturnBytes
    run.rssBytes.push(rssBytes)
    const { evictableBytes } = pool
    const next = decideRelief({ atMs, rssBytes, budgetBytes, availableBytes: 1, totalBytes: 0, evictableBytes }, memory)
    memory = next.memory
    if (next.decision.isHelpless) run.helplessTold++
    if (next.decision.giveUpBytes === 0) continue
    const { evicted, bytes } = pool.relieve(next.decision.giveUpBytes)
    neededBytes -= bytes
    toReturnBytes += bytes * returnedShare
    freeInProcessBytes += bytes * (1 - returnedShare)
    run.evicted += evicted
    run.evictedAtSecond.push(atMs / 1000)
  }
  return { ...run, made }
}

const FUNCTIONS = 200
/** All once, then only the last forty, which fit well. */
const once = (second: number): number[] => (second === 0 ? numbers(FUNCTIONS) : numbers(FUNCTIONS).slice(-40))
const scenario = { budgetBytes: 1000 * MB, functions: FUNCTIONS, seconds: 120, callsAt: once }
/** 1,100 MB are in use at first, and 950 may be. */
const LEAST_EVICTED = 30

t.test('where RSS follows at once, what is too much leaves and nothing else', async (t) => {
  const { rssBytes, evicted, evictedAtSecond, made } = await simulate({ ...scenario, returnedShare: 1, returnedEachSecond: 1 })
  t.equal(evicted, LEAST_EVICTED)
  t.strictSame(evictedAtSecond, [0])
  t.equal(rssBytes.at(-1), 950 * MB)
  t.equal(made, FUNCTIONS, 'those that are called go on being warm')
})

t.test('where RSS follows late, not much more leaves than has to', async (t) => {
  for (const returnedEachSecond of [0.8, 0.5, 0.2]) {
    const { rssBytes, evicted } = await simulate({ ...scenario, returnedShare: 1, returnedEachSecond })
    t.ok((rssBytes.at(-1) ?? 0) <= scenario.budgetBytes)
    t.ok(evicted <= 3 * LEAST_EVICTED, `${evicted} with ${returnedEachSecond} a second`)
  }
})

t.test('where part of it never returns, more leaves until RSS is below the budget', async (t) => {
  for (const returnedShare of [0.6, 0.4, 0.25]) {
    const { rssBytes, evicted } = await simulate({ ...scenario, returnedShare, returnedEachSecond: 0.7 })
    t.ok((rssBytes.at(-1) ?? 0) <= scenario.budgetBytes)
    t.ok(evicted <= (2 * LEAST_EVICTED) / returnedShare, `${evicted} with ${returnedShare} returned`)
  }
})

t.test('where nothing returns, it is tried ever more rarely, so that what is called stays warm', async (t) => {
  const { evictedAtSecond, made } = await simulate({ ...scenario, returnedShare: 0, returnedEachSecond: 1 })
  t.strictSame(evictedAtSecond, [0, 1, 3, 7, 15, 31, 63, 95])
  t.ok(made <= FUNCTIONS + 100, `${made - FUNCTIONS} loads of 4800 calls were again`)
})

t.test('memory that stays in the process is used again: RSS grows no further', async (t) => {
  const turning = (second: number): number[] => numbers(50).map((call) => (call + second * 50) % FUNCTIONS)
  const { rssBytes } = await simulate({ ...scenario, callsAt: turning, returnedShare: 0.1, returnedEachSecond: 1 })
  t.equal(Math.max(...rssBytes), BASE_BYTES + FUNCTIONS * HEAP_BYTES, 'as when all were there')
})

t.test('a budget that even busy functions pass is said to be too small, once', async (t) => {
  const { helplessTold } = await simulate({
    ...scenario,
    budgetBytes: 90 * MB,
    callsAt: (second) => (second < 60 ? numbers(3) : []),
    returnedShare: 1,
    returnedEachSecond: 1,
  })
  t.equal(helplessTold, 1)
})

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
