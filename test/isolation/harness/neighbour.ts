import type { TestServer } from '../../support/server.ts'
import { call, shown, type Answer } from './call.ts'
import { deployScript } from './control.ts'

export const NEIGHBOUR = 'neighbour'

/** CPU time that a call of it takes, in ms. */
const CALL_CPU_MS = 5
const CALIBRATION_LOOPS = 2_000_000

/** How the neighbour fared for a while. */
export interface Probe {
  readonly answers: readonly Answer[]
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
  /** How many calls were made. */
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
export async function settleNeighbour(server: TestServer, upstreamUrl: string, secret: string): Promise<Neighbour> {
  const deployed = await deployScript(server, NEIGHBOUR, { code: CODE, env: { UPSTREAM: upstreamUrl, SECRET: secret } })
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
  return { check, watch: (perSecond) => watch(check, perSecond), calls: () => count }
}

function watch(check: Neighbour['check'], perSecond: number): { stop(): Promise<Probe> } {
  const pending = new Set<Promise<void>>()
  const answers: Answer[] = []
  const wrong: string[] = []
  const tookMs: number[] = []
  const startMs = performance.now()
  let due = 0
  const callDue = (): void => {
    // A timer that is late makes up for it, and the delay counts: who calls at a rate does not wait for a slow answer.
    for (; startMs + (due * 1000) / perSecond <= performance.now(); due++) {
      const dueMs = startMs + (due * 1000) / perSecond
      const probe = check().then((checked) => {
        tookMs.push(performance.now() - dueMs)
        answers.push(checked.answer)
        if (checked.wrong !== undefined) wrong.push(checked.wrong)
        pending.delete(probe)
      })
      pending.add(probe)
    }
  }
  callDue()
  const timer = setInterval(callDue, Math.min(10, 1000 / perSecond))
  return {
    stop: async () => {
      clearInterval(timer)
      await Promise.all(pending)
      return { answers, wrong, tookMs, p99Ms: quantile(tookMs, 0.99) }
    },
  }
}

/** The value below which a share of the values is; undefined if there are none. */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}
