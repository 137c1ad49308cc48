/** Runs tests in a guest: a real isolate with the runtime, whose timers and fetches are real. */
import { BODY_KINDS, bundleRuntime, ENTRIES, SAYS, type GuestOptions } from '@carpool/runtime'
import { callbacksOf } from '../../host/src/isolates/guest-bridge.ts'
import { Bootstrap, GuestIsolate } from '../../host/src/isolates/guest-isolate.ts'
import { ORIGIN, type Results, type Roots, type Script } from './scripts.ts'

const MEMORY_MB = 512
const OPTIONS: GuestOptions = {
  functionName: 'wpt',
  revision: '0123456789abcdef',
  limits: { memoryMb: MEMORY_MB, cpuMs: 60_000, wallMs: 60_000, streamMs: 0, idleMs: 0, concurrency: 1 },
  env: {},
  // A few tests wait for the time to go on.
  clock: 'running',
}

export interface Run {
  readonly results: Results
  /** What is wrong with the run as such: it took too long, or something was thrown outside of all subtests. */
  readonly problem: string | undefined
}

const bootstrap = new Bootstrap(await bundleRuntime())

/** Runs the scripts of one test, in an isolate of its own. */
export async function runInGuest(scripts: readonly Script[], roots: Roots, timeoutMs: number): Promise<Run> {
  const { promise, resolve } = Promise.withResolvers<Run>()
  const logs: string[] = []
  const fail = (problem: string): void => resolve({ results: {}, problem })
  const timers = new Map<number, NodeJS.Timeout>()
  const isolate = await GuestIsolate.create({
    bootstrap,
    callbacks: callbacksOf({ guest: undefined, onLoaded: undefined }),
    memoryLimitMb: MEMORY_MB,
    onCatastrophe: fail,
  })
  let isEntered = false
  let pushed = 0
  const enter = (): void => {
    if (isEntered || pushed === 0) return
    isEntered = true
    pushed = 0
    isolate.enter()
  }
  const push = (...entry: Parameters<GuestIsolate['push']>): void => {
    isolate.push(...entry)
    pushed++
    setImmediate(enter)
  }
  const settleFetch = (fetch: number, head: string): void => {
    const { url } = JSON.parse(head) as { url: string }
    const content = url.startsWith(`${ORIGIN}/`) ? roots.read(new URL(url).pathname) : undefined
    const type = url.endsWith('.json') ? 'application/json' : 'text/plain'
    const result =
      content === undefined
        ? { ok: false, message: 'fetch failed' }
        : { ok: true, status: 200, statusText: 'OK', headers: [['content-type', type]], url, redirected: false }
    push(ENTRIES.settleFetch, fetch, JSON.stringify(result), BODY_KINDS.indexOf('text'), content ?? '')
  }
  const read = (): void => {
    isolate.readMessages((op, a, b, c, text, body) => {
      if (op === SAYS.loaded && !(JSON.parse(text) as { ok: boolean }).ok) fail(text)
      else if (op === SAYS.startTimer)
        timers.set(
          b,
          setTimeout(() => push(ENTRIES.fireTimer, b), c),
        )
      else if (op === SAYS.stopTimer) clearTimeout(timers.get(a))
      else if (op === SAYS.startFetch) settleFetch(b, text)
      else if (op === SAYS.log) logs.push(text)
      else if (op === SAYS.fail) fail(text)
      else if (op === SAYS.answer) {
        const { status, message, results } = JSON.parse(String(body)) as { status: number; message: string; results: Results }
        resolve({ results, problem: status === 0 ? undefined : message })
      }
    })
  }
  isolate.listen({
    batchDone: () => {
      isEntered = false
      read()
      if (isolate.disposed) fail('the isolate was ended')
      else enter()
    },
    messagesWait: read,
    grown: () => {},
  })
  const timeout = setTimeout(() => fail('it took too long'), timeoutMs)
  try {
    await isolate.load(JSON.stringify(OPTIONS), { source: sourceOf(scripts), filename: 'wpt.js' })
    read()
    push(ENTRIES.invoke, 1, JSON.stringify({ invocationId: '1', method: 'GET', url: `${ORIGIN}/`, headers: [], clientIp: '' }))
    const run = await promise
    return run.problem === undefined || logs.length === 0
      ? run
      : { ...run, problem: `${run.problem}: ${logs.join('; ').slice(0, 500)}` }
  } finally {
    clearTimeout(timeout)
    for (const timer of timers.values()) clearTimeout(timer)
    isolate.dispose()
  }
}

/**
 * A function that runs the scripts when it is called, in the global scope as pages do, and answers with what came of them. They
 * are one text: what each declares by `const` would else be there for itself alone.
 */
function sourceOf(scripts: readonly Script[]): string {
  const text = scripts.map(({ source }) => source).join('\n;\n')
  return `(() => ({ default: { fetch: async () => { (0, eval)(${JSON.stringify(text)}); return new Response(await wptResults) } } }))`
}
