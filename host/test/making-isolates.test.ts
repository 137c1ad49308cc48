import { resolveLimits } from '@carpool/core'
import { NO_BODY } from '@carpool/wire'
import t from 'tap'
import { inProcessHost } from './support/in-process-host.ts'

t.test('a function whose isolate is to be made does not wait for all of another owner', async (t) => {
  const host = await inProcessHost()
  const load = (functionName: string, owner: string): void =>
    host.host.receive(
      { type: 'load', revision: functionName, functionName, owner, limits: resolveLimits({}), env: {} },
      `(() => ({ default: { fetch: () => new Response('${functionName}') } }))`,
      NO_BODY,
    )
  const names = Array.from({ length: 12 }, (_, index) => `f${index}`)
  for (const name of names) load(name, 'many')
  load('other', 'one')
  const order: string[] = []
  const calls = [...names, 'other'].map(async (name) => order.push(await host.answerOf(host.invoke(name))))
  await Promise.all(calls)
  t.ok(order.indexOf('other') <= 2, order.join(' '))
})
