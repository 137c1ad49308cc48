import t from 'tap'
import { parseSince } from '../src/options.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const since = (text: string) => parseSince(text, () => NOW_MS)

t.test('a length of time counts back from now', async (t) => {
  t.equal(since('90m'), NOW_MS - 90 * 60_000)
  t.equal(since('24h'), NOW_MS - 24 * 3_600_000)
  t.equal(since('7d'), NOW_MS - 7 * 86_400_000)
  t.equal(since('999999999d'), 0, 'but not to before the epoch')
})

t.test('an ISO 8601 time is taken as it is', async (t) => {
  t.equal(since('2026-11-21'), Date.UTC(2026, 10, 21))
  t.equal(since('2026-11-21T08:00Z'), Date.UTC(2026, 10, 21, 8))
  t.equal(since('2026-11-21T08:00:30.5+02:00'), Date.UTC(2026, 10, 21, 6, 0, 30, 500))
  t.equal(since('2026-11-21T08:00:00'), new Date(2026, 10, 21, 8).getTime(), 'a time of this machine')
  t.equal(since('1969-01-01'), 0, 'but not before the epoch')
})

t.test('anything else is refused, with what it takes', async (t) => {
  const wrong = [
    '',
    '90',
    'm',
    '-5m',
    '1.5h',
    '90s',
    '7w',
    'now',
    '2026',
    '2026-02-31',
    '2026-13-01',
    '2026-11-21T25:00Z',
    '1 Jan 2026',
    ' 7d',
  ]
  for (const text of wrong) {
    const error = t.throws(() => since(text), { code: 'commander.invalidArgument' }, text) as Error
    t.match(error.message, /such as 90m, 24h or 7d, or an ISO 8601 time such as/)
  }
})
