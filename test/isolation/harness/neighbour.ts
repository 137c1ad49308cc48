import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Test } from 'tap'
import type { TestServer } from '../../support/server.ts'
import { call, shown, type Answer } from './call.ts'
import { deployScript } from './control.ts'
import type { FromNeighbour, ToNeighbour } from './neighbour-thread.ts'
import { UPSTREAM_HOST } from './upstream.ts'

export const NEIGHBOUR = 'neighbour'

/** CPU time that a call of it takes, in ms. */
const CALL_CPU_MS = 5
const CALIBRATION_LOOPS = 2_000_000
/**
 * Calls the function on plain Node.js instead, in a process of its own. What slows that down comes of the attacks and their
 * clients on the same machine, and not of sharing a host.
 */
const IS_PROCESS = process.env['CARPOOL_ISOLATION_NEIGHBOUR'] === 'process'

/** How the neighbour fared for a while. */
export interface Probe {
  readonly calls: number
  /** Calls that were not answered as they should be. */
  readonly wrong: readonly string[]
  /** From when each call was due to the end of its answer, in ms. */
  readonly tookMs: readonly number[]
  /** Undefined without calls. */
  readonly p99Ms: number | undefined
}

/** The function of somebody else, in the same host: a few ms of CPU, one fetch, and a secret of its own. */
export interface Neighbour {
  /** Calls it once. @returns what was wrong with the answer */
  check(): Promise<{ readonly answer: Answer; readonly wrong: string | undefined }>
  /** Calls it at a constant rate, whether or not the calls before are answered, until it is told to stop. */
  watch(perSecond: number): { stop(): Promise<Probe> }
  /** How many calls of the function were made. */
  readonly calls: () => number
}

const CODE = `(function () {
  return { default: { async fetch(request, env) {
    const { searchParams } = new URL(request.url)
    let work = 0
    for (let turn = Number(searchParams.get('loops')); turn > 0; turn--) work = (work * 31 + turn) | 0
    globalThis.work = work
    const response = await fetch(env.UPSTREAM + '?' + searchParams.get('number'))
    return new Response('mine ' + await response.text(), { headers: { 'x-secret': String(env.SECRET.length) } })
  } } }
})`

/** Deploys the neighbour and finds out how many turns of a loop take 5 ms here. */
export async function settleNeighbour(t: Test, server: TestServer, secret: string): Promise<Neighbour> {
  const caller = await Caller.start(t)
  const { upstreamUrl } = caller
  const env = { UPSTREAM: upstreamUrl, SECRET: secret }
  const request = { code: CODE, env }
  const deployed = await deployScript(server, NEIGHBOUR, request, NEIGHBOUR)
  if (deployed.status !== 201) throw new Error(`The neighbour was refused: ${JSON.stringify(deployed)}`)
  let count = 0
  let loops = CALIBRATION_LOOPS
  const check: Neighbour['check'] = async () => {
    const number = ++count
    const answer = await call(`${server.url}/${NEIGHBOUR}/?number=${number}&loops=${loops}`)
    const isRight = answer.status === 200 && answer.text === `mine pong ${number}`
    return { answer, wrong: isRight ? undefined : shown(answer) }
  }
  let fastestMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const { answer, wrong } = await check()
    if (wrong !== undefined) throw new Error(`The neighbour answers wrong: ${wrong}`)
    const [, cpuMs] = /cpu;dur=([\d.]+)/.exec(answer.headers.get('server-timing') ?? '') ?? []
    fastestMs = Math.min(fastestMs, Number(cpuMs))
  }
  loops = Math.max(1, Math.round((CALIBRATION_LOOPS * CALL_CPU_MS) / fastestMs))
  const watchedUrl = IS_PROCESS ? await startProcess(t, env) : `${server.url}/${NEIGHBOUR}/`
  const watch: Neighbour['watch'] = (perSecond) => {
    const url = `${watchedUrl}?loops=${loops}`
    const watched = caller.watch({ url, perSecond, firstNumber: count + 1 })
    let probe: Promise<Probe> | undefined
    return {
      stop: () =>
        (probe ??= watched.stop().then((calls) => {
          if (!IS_PROCESS) count += calls.calls
          return { ...calls, p99Ms: quantile(calls.tookMs, 0.99) }
        })),
    }
  }
  return { check, watch, calls: () => count }
}

/** In a session of its own, so that the system gives it a share of its own (sched(7): autogroups). @returns its address */
async function startProcess(t: Test, env: object): Promise<string> {
  // Without the hooks of the test runner.
  const options = { execArgv: [], env: {}, detached: true }
  const child = fork(new URL('neighbour-process.ts', import.meta.url), [CODE, JSON.stringify(env)], options)
  t.teardown(() => child.disconnect())
  const [port] = (await once(child, 'message')) as [number]
  return `http://127.0.0.1:${port}/`
}

type Calls = Extract<FromNeighbour, { readonly calls: number }>

/** The thread that calls the neighbour, and answers its fetches. */
class Caller {
  readonly upstreamUrl: string
  readonly #thread: Worker

  private constructor(thread: Worker, upstreamUrl: string) {
    this.#thread = thread
    this.upstreamUrl = upstreamUrl
  }

  static async start(t: Test): Promise<Caller> {
    // Without the hooks of the test runner.
    const thread = new Worker(new URL('neighbour-thread.ts', import.meta.url), { workerData: UPSTREAM_HOST, execArgv: [] })
    t.teardown(() => thread.terminate())
    const [{ upstreamUrl }] = (await once(thread, 'message')) as [{ upstreamUrl: string }]
    return new Caller(thread, upstreamUrl)
  }

  watch(order: { readonly url: string; readonly perSecond: number; readonly firstNumber: number }): { stop(): Promise<Calls> } {
    this.#send({ watch: order })
    let stopped: Promise<Calls> | undefined
    return {
      stop: () =>
        (stopped ??= (async () => {
          this.#send('stop')
          const [calls] = (await once(this.#thread, 'message')) as [Calls]
          return calls
        })()),
    }
  }

  #send(message: ToNeighbour): void {
    this.#thread.postMessage(message, [])
  }
}

/** The value below which a share of the values is; undefined if there are none. */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}
