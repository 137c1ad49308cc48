import type { Registry, RouteChange } from '@carpool/registry'
import { ServerMetrics } from '@carpool/telemetry'
import t from 'tap'
import { forgetDeleted } from '../src/deleted-functions.ts'

type Revision = NonNullable<ReturnType<Registry['find']>>

t.test('a function that was deleted leaves the metrics once nothing of it can run, unless its name is back', async (t) => {
  const there = new Set<string>(['stays', 'goes', 'returns', 'streams'])
  const metrics = new ServerMetrics()
  const listeners: Array<(change: RouteChange) => void> = []
  const due: Array<() => void> = []
  forgetDeleted(
    {
      find: (name) => (there.has(name) ? ({ functionName: name } as Revision) : undefined),
      onRouteChange: (listener) => {
        listeners.push(listener)
        return () => {}
      },
    },
    metrics,
    (run) => due.push(run),
  )
  const change = (functionName: string, current?: Revision): void => {
    if (current === undefined) there.delete(functionName)
    else there.add(functionName)
    for (const listener of listeners) listener({ functionName, ...(current !== undefined && { current }) })
  }
  for (const name of there) metrics.rejected(name, 1)
  metrics.streams.changed('streams', 'answer', 1)
  metrics.streams.changed('goes', 'socket', 1)
  metrics.streams.changed('goes', 'socket', -1)
  const names = async (): Promise<string[]> => {
    const found = (await metrics.render()).matchAll(/function="(?<name>\w+)"/g)
    return [...new Set([...found].map(({ groups }) => groups!['name']!))].toSorted()
  }
  for (const name of ['goes', 'returns', 'streams']) change(name)
  change('returns', {} as Revision)
  t.strictSame(await names(), ['goes', 'returns', 'stays', 'streams'], 'its last figures can be read')
  t.equal(due.length, 3)
  for (const run of due) run()
  t.strictSame(await names(), ['returns', 'stays', 'streams'])
  t.match(await metrics.render(), /carpool_open_streams\{function="streams",kind="answer"\} 1/, 'what is open is shown')
})
