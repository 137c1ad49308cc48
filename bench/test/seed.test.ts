import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Caller } from '../src/lib/caller.ts'
import { parseSeedAnswer } from '../src/seed/answer.ts'
import { checkSeed } from '../src/seed/checks.ts'
import { middleOf, type Measurement } from '../src/seed/measurement.ts'
import { defaultProcessCap } from '../src/seed/process-cap.ts'
import type { Way, WayKey } from '../src/seed/way.ts'
import { createWays } from '../src/seed/ways.ts'

const ID = '0ba3ee1c-d57e-41f5-93d6-7a23cdab4b0c'

t.test('the answer of the seed function is read, and anything else is not one', async (t) => {
  t.strictSame(parseSeedAnswer(`${ID},7,10000000,49999995000000,Hello World\n`), {
    instanceId: ID,
    invocationId: 7,
    length: 10_000_000,
    sum: 49_999_995_000_000,
  })
  for (const body of ['', 'Hello World', `${ID},7,10,45,Hello`, `,1,1,1,Hello World`, `${ID},NaN,10,45,Hello World`]) {
    t.equal(parseSeedAnswer(body), undefined, body)
  }
})

const MEGABYTE = 1e6

function measurement(
  way: WayKey,
  calls: number,
  given: { slowestMs?: number; peakMb?: number; failures?: number; hosts?: number },
): Measurement {
  const { slowestMs = 3000, peakMb = 200, failures = 0, hosts = 1 } = given
  return {
    way,
    title: way,
    calls,
    failures,
    failureLines: [],
    instances: [{ id: ID, first: 1, last: calls }],
    p50Ms: slowestMs,
    slowestMs,
    functionProcesses: hosts,
    standbyProcesses: 0,
    standbyBytes: 0,
    usage: {
      memoryKind: 'pss',
      peakBytes: peakMb * MEGABYTE,
      peakResidentBytes: peakMb * MEGABYTE,
      peakProcesses: hosts + 1,
      cpuSeconds: 1,
      processes: [],
      looks: 2,
      longestGapMs: 50,
    },
  }
}

const GOOD = [
  measurement('carpool', 10, { slowestMs: 3300, peakMb: 300 }),
  measurement('plain-node', 10, { slowestMs: 3000 }),
  measurement('process-per-call', 10, { peakMb: 900 }),
  measurement('carpool', 100, { slowestMs: 12_000 }),
]
const failing = (...changed: Measurement[]): number[] => {
  const verdicts = checkSeed(
    GOOD.map((good) => changed.find(({ way, calls }) => way === good.way && calls === good.calls) ?? good),
  )
  return verdicts.flatMap(({ isMet }, index) => (isMet ? [] : [index]))
}

t.test('each claim of the seed experiment is checked at its limit', async (t) => {
  t.strictSame(failing(), [])
  t.strictSame(failing(measurement('carpool', 10, { hosts: 2 })), [0])
  t.strictSame(failing(measurement('carpool', 100, { failures: 1 })), [1])
  t.strictSame(failing(measurement('carpool', 10, { slowestMs: 3301 })), [2])
  t.strictSame(failing(measurement('carpool', 10, { peakMb: 301 })), [3])
})

t.test('of several turns the one with the middle slowest call counts', async (t) => {
  const turns = [5, 1, 9].map((slowestMs) => measurement('carpool', 10, { slowestMs, peakMb: slowestMs }))
  t.match(middleOf(turns), { slowestMs: 5, usage: { peakBytes: 5e6 } })
  t.match(middleOf(turns.slice(1)), { slowestMs: 1 })
})

t.test('a turn in which something went wrong is not hidden by better ones', async (t) => {
  const verdicts = checkSeed([...GOOD, measurement('carpool', 10, { failures: 1, peakMb: 400 }), measurement('carpool', 10, {})])
  t.strictSame(
    verdicts.map(({ isMet }) => isMet),
    [false, true, true, false],
  )
})

t.test('what was not measured is not checked', async (t) => {
  t.strictSame(checkSeed([]), [])
  t.equal(checkSeed(GOOD.slice(3)).length, 1)
})

t.test('the cap on processes follows the free memory and is at least one', async (t) => {
  t.equal(defaultProcessCap(0), 1)
  t.ok(defaultProcessCap(64e9) > defaultProcessCap(8e9))
})

const file = fileURLToPath(new URL('fixtures/pid-handler.cjs', import.meta.url))
const wayOf = (key: WayKey, processCap: number): Way => createWays({ file, processCap }).find((way) => way.key === key) as Way
const bodies = (results: ReadonlyArray<{ body: string }>): string[][] => results.map(({ body }) => body.split(' '))

t.test('a plain process takes all calls', async (t) => {
  await using running = await wayOf('plain-node', 1).start()
  using caller = new Caller()
  const answers = bodies(await caller.callAtOnce(running.url, 4))
  t.equal(new Set(answers.map(([pid]) => pid)).size, 1)
  t.strictSame(answers.map(([, calls]) => calls).toSorted(), ['1', '2', '3', '4'])
})

t.test('a process per call takes one call at a time and is used again', async (t) => {
  await using running = await wayOf('process-per-call', 10).start()
  using caller = new Caller()
  const atOnce = bodies(await caller.callAtOnce(running.url, 3))
  t.equal(new Set(atOnce.map(([pid]) => pid)).size, 3, 'three at once, three processes')
  const [later] = bodies([await caller.call(running.url)])
  t.ok(atOnce.some(([pid]) => pid === later?.[0]) && later?.[1] === '2', 'an idle one takes the next call')
})

t.test('above the cap, calls wait', async (t) => {
  await using running = await wayOf('process-per-call', 2).start()
  using caller = new Caller()
  const answers = bodies(await caller.callAtOnce(running.url, 6))
  t.equal(new Set(answers.map(([pid]) => pid)).size, 2)
})

t.test('a process that fails or dies costs its own call only', async (t) => {
  await using running = await wayOf('process-per-call', 1).start()
  using caller = new Caller()
  t.match(await caller.call(`${running.url}throw`), { status: 500, body: /thrown on purpose/ })
  t.match(await caller.call(`${running.url}exit`), { status: 500, body: /ended with 3/ })
  t.match(await caller.call(running.url), { status: 200 })
})
