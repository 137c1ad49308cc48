/** The first isolate of a process has called a function of ours, for the code cache of the runtime: nothing of that shows. */
import t from 'tap'
import { resolveLimits } from '@carpool/core'
import { inProcessHost } from './support/in-process-host.ts'

const SOURCE = `(() => {
  const start = (controller) => {
    controller.enqueue(new Uint8Array(5))
    controller.close()
  }
  fetch('http://localhost/', { method: 'POST', body: new ReadableStream({ start }), duplex: 'half' })
  return { default: { fetch: () => Response.json({ env: process.env, since: performance.timeOrigin }) } }
})`

t.test('what a module scope sends leaves, and the call finds its own environment', async (t) => {
  const beforeMs = Date.now()
  const host = await inProcessHost()
  const names = { functionName: 'f', owner: 'o' }
  host.host.receive(
    { type: 'load', revision: 'rev', ...names, limits: resolveLimits({}), env: { A: 'own' } },
    SOURCE,
    new Uint8Array(),
  )
  const invocation = host.invoke('rev')
  const { env, since } = JSON.parse((await host.endOf(invocation)).body) as { env: object; since: number }
  t.strictSame(env, { A: 'own' })
  t.ok(since >= beforeMs && since <= Date.now(), `its time counts from ${since}`)
  await host.until(() => host.partsOf('fetch', 1).some(({ message }) => 'end' in message))
  t.equal(host.bytesOf('fetch', 1), 5)
})
