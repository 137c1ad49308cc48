/**
 * One host: what it takes in, what it refuses, and that nobody pays for what others do. What work needs a second:
 * `test/scaling`.
 */
import type { InvocationRecord } from '@carpool/core'
import t from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { callAndLeave, startLoad } from '../support/load.ts'
import { QUICK, serving, SLEEP, WORK } from '../support/scaling.ts'
import { startServer, until } from '../support/server.ts'

t.test('calls that wait are all taken in by one host, and give their slots back', async (t) => {
  const server = await startServer(t)
  await server.deploy('sleep', SLEEP)
  const load = startLoad(t, `${server.url}/sleep/`, 400)
  await until(async () => (await server.status()).inFlight >= 400)
  const { hosts } = await until(async () => {
    const status = await server.status()
    return status.hosts.some(({ inFlight, running }) => inFlight > 300 && running < 64) && status
  })
  t.equal(serving(hosts).length, 1)
  t.strictSame(new Set((await load.stop()).map(({ body }) => body)), new Set(['woke']))
  t.same((await server.status()).decisions, [])
})

t.test('where no host may be added, what does not fit is told to come again, and the rest is served', async (t) => {
  const limits = ['--max-hosts', '1', '--queue-target-ms', '20', '--queue-interval-ms', '100']
  // Beside other tests its host may get no more than a part of a core.
  const server = await startServer(t, [...QUICK, ...limits, '--saturation-percent', '25'])
  await server.deploy('work', WORK)
  const load = startLoad(t, `${server.url}/work/`, 60)
  await until(async () => load.answers.some(({ status }) => status === 503))
  await until(async () => load.answers.filter(({ status }) => status === 200).length > 100)
  // A host that gets another core for a moment is not saturated in that moment.
  const readiness = await until(async () => {
    const answer = (await (await fetch(`${server.adminUrl}/readyz`)).json()) as { status: string }
    return answer.status === 'saturated' && answer
  })
  t.match(readiness, { reasons: [/calls wait for a place/] })
  const { hosts, shed, decisions } = await until(async () => {
    const status = await server.status()
    return status.hosts[0]?.state === 'saturated' && status
  })
  const answers = await load.stop()
  t.equal(hosts.length, 1)
  t.ok((shed['saturated'] ?? 0) > 0)
  t.ok(decisions.every(({ action, reason }) => action === 'none' && ['max-hosts', 'no-spare-core'].includes(reason)))
  const refused = answers.filter(({ status }) => status !== 200)
  t.ok(refused.every(({ status, retryAfter, body }) => status === 503 && Number(retryAfter) >= 1 && /"saturated"/.test(body)))
})

/** Of another function, during a flood. */
const QUIET_CALLS = IS_WHOLE ? 20 : 8

/** Shared by the two below. */
const alone = await startServer(t, ['--max-hosts', '1'])

t.test('what nobody waits for any more is not begun', async (t) => {
  const server = alone
  await server.deploy(
    'counted',
    `let begun = 0
    export default {
      fetch(request) {
        if (request.url.endsWith('/begun')) return new Response(String(begun))
        begun++
        // Several times as long as the others wait.
        let sum = 0
        for (let number = 0; number < 200_000_000; number++) sum += Math.sqrt(number)
        return new Response('done' + sum)
      }
    }`,
    '--cpu-ms',
    '60000',
  )
  const first = server.get('/counted/')
  await until(async () => (await server.status()).inFlight === 1)
  const others = Array.from({ length: 30 }, () => callAndLeave(`${server.url}/counted/`, 100))
  t.strictSame(new Set(await Promise.all(others)), new Set(['left']))
  t.equal((await first).status, 200)
  await until(async () => (await server.status()).inFlight === 0)
  t.equal(await (await server.get('/counted/begun')).text(), '1')
})

t.test('a flood of one function leaves room for another', async (t) => {
  const server = alone
  await server.deploy('work', WORK)
  await server.deploy('quiet', `export default { fetch: () => new Response('quiet') }`)
  const flood = startLoad(t, `${server.url}/work/`, 200)
  await until(async () => (await server.status()).queued > 50)
  for (let count = 0; count < QUIET_CALLS; count++) {
    const response = await server.get('/quiet/')
    t.equal(response.status, 200)
    await response.text()
  }
  t.ok((await server.status()).queued > 0, 'the flood went on')
  await flood.stop()
  const waitsUs = async (name: string): Promise<number[]> => {
    const records = await server.json<InvocationRecord[]>('invocations', name, '-n', '1000')
    return records.map(({ queueUs }) => queueUs).toSorted((a, b) => a - b)
  }
  const [quiet, flooding] = [await waitsUs('quiet'), await waitsUs('work')]
  t.ok(quiet.at(-1)! < flooding[Math.floor(flooding.length / 2)]!, 'its calls did not queue with those of the flood')
})
