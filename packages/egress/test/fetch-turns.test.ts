import t from 'tap'
import { FetchTurns } from '../src/fetch-turns.ts'
import type { FetchOutcome } from '../src/fetcher.ts'
import type { EgressRequest } from '../src/messages.ts'

const DONE: FetchOutcome = {
  result: { ok: false, message: 'done' },
  body: new Uint8Array(),
  end: 'failed',
  bytesOut: 0,
  bytesIn: 0,
}

function requestOf(functionName: string): EgressRequest {
  return { head: '', body: new Uint8Array(), functionName, owner: 'o' }
}

/** What takes the event loop so long, in ms. */
function hold(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

t.test('a function that begins or stops a thousand fetches holds up nobody else for more than a few of them', async (t) => {
  const begun: string[] = []
  const settled = new Map<number, string>()
  const turns = new FetchTurns(
    ({ functionName }, { signal }) => {
      hold(0.2)
      begun.push(functionName)
      return new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          hold(0.2)
          begun.push('stopped')
          resolve({ ...DONE, end: 'aborted' })
        }),
      )
    },
    (number, { end }) => settled.set(number, end),
  )
  for (let number = 0; number < 1_000; number++) turns.begin(number, requestOf('flood'))
  turns.begin(1_000, requestOf('other'))
  while (!begun.includes('other')) await new Promise((resolve) => setImmediate(resolve))
  t.ok(begun.indexOf('other') < 20, `${begun.indexOf('other')} came first`)
  while (begun.length < 500) await new Promise((resolve) => setImmediate(resolve))
  const before = begun.length
  for (let number = 0; number < 1_000; number++) turns.stop(number)
  t.ok(begun.length - before < 20, 'stops wait for their turns as well')
  t.equal(settled.size, 1_001 - before, 'what had not begun is settled at once')
  turns.begin(2_000, requestOf('other'))
  while (begun.filter((name) => name === 'other').length < 2) await new Promise((resolve) => setImmediate(resolve))
  t.ok(begun.length - before < 40, `${begun.length - before} stops came first`)
  while (settled.size < 1_000) await new Promise((resolve) => setImmediate(resolve))
  t.same(new Set(settled.values()), new Set(['aborted']))
  t.equal(begun.filter((name) => name === 'flood').length, before - 1, 'and never begins')
})

t.test('one fetch begins at once, and is settled once', async (t) => {
  const settled: number[] = []
  let begun = 0
  const turns = new FetchTurns(
    async () => {
      begun++
      return DONE
    },
    (number) => settled.push(number),
  )
  turns.begin(7, requestOf('f'))
  t.equal(begun, 1)
  await new Promise((resolve) => setImmediate(resolve))
  turns.stop(7)
  turns.stop(8)
  t.same(settled, [7])
})
