import t from 'tap'
import { judge, revisionOf, type Deployment } from '../src/deploy/timeline.ts'

const TIMELINE: readonly Deployment[] = [
  { revision: 0, sentMs: Number.NEGATIVE_INFINITY, confirmedMs: 0 },
  { revision: 1, sentMs: 100, confirmedMs: 200 },
  { revision: 2, sentMs: 300, confirmedMs: 400 },
]
const judged = (startMs: number, endMs: number, body: string | undefined) => judge({ startMs, endMs, body }, TIMELINE)

t.test('an answer names one revision or is a mix', async (t) => {
  t.equal(revisionOf('12 12 12'), 12)
  for (const body of ['12 12 13', '11 12 12', '12', '12 12', '', 'hello', '12 12 12 12', '1 1 undefined'])
    t.equal(revisionOf(body), undefined)
  t.equal(judged(10, 20, '0 0 1'), 'mixed')
  t.equal(judged(10, 20, undefined), 'failed')
})

t.test('while a deploy is under way, the old and the new revision may both answer', async (t) => {
  t.equal(judged(150, 160, '0 0 0'), 'good')
  t.equal(judged(150, 160, '1 1 1'), 'good')
  t.equal(judged(90, 110, '1 1 1'), 'good', 'started before it')
})

t.test('once a deploy is confirmed, calls that start then are answered by it', async (t) => {
  t.equal(judged(200, 210, '0 0 0'), 'stale')
  t.equal(judged(199, 900, '0 0 0'), 'good', 'started before')
  t.equal(judged(200, 210, '1 1 1'), 'good')
  t.equal(judged(450, 460, '0 0 0'), 'stale')
})

t.test('no revision answers before it was sent', async (t) => {
  t.equal(judged(10, 99, '1 1 1'), 'early')
  t.equal(judged(10, 20, '7 7 7'), 'early')
})
