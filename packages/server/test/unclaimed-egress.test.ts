import t from 'tap'
import { UnclaimedEgress } from '../src/unclaimed-egress.ts'

t.test('bytes are added up by host and revision, and told once', (t) => {
  const told: unknown[] = []
  const unclaimed = new UnclaimedEgress(({ id }, used) => told.push({ id, ...used }))
  const [one, two] = [1, 2].map((id) => ({ id, settleFetch() {} }))
  if (one === undefined || two === undefined) return t.end()
  for (let call = 0; call < 100; call += 1) unclaimed.add(one, 'a', { bytesOut: 1, bytesIn: 10 })
  unclaimed.add(one, 'b', { bytesOut: 0, bytesIn: 0 })
  unclaimed.add(two, 'a', { bytesOut: 0, bytesIn: 7 })
  unclaimed.close()
  unclaimed.close()
  t.same(told, [
    { id: 1, type: 'background', revision: 'a', cpuUs: 0, egressBytesOut: 100, egressBytesIn: 1000 },
    { id: 2, type: 'background', revision: 'a', cpuUs: 0, egressBytesOut: 0, egressBytesIn: 7 },
  ])
  t.end()
})

t.test('they are told soon also if nobody closes', async (t) => {
  const told = Promise.withResolvers<unknown>()
  const unclaimed = new UnclaimedEgress((_host, used) => told.resolve(used))
  unclaimed.add({ id: 1, settleFetch() {} }, 'a', { bytesOut: 3, bytesIn: 0 })
  // What is told later must not keep the process.
  const alive = setInterval(() => {}, 1_000)
  t.match(await told.promise, { egressBytesOut: 3 })
  clearInterval(alive)
})
