/**
 * Hosts follow the CPU: work that fills a core gets a second one, and nobody pays for the change. A host is added when a core
 * is free: this file runs alone (`serial` in .taprc), or it would keep a core busy until none of the tests beside it does.
 */
import { availableParallelism } from 'node:os'
import type { HostInfo } from '@carpool/core'
import t from 'tap'
import { startLoad } from '../support/load.ts'
import { QUICK, serving, SLEEP, WORK } from '../support/scaling.ts'
import { startServer, until, type TestServer } from '../support/server.ts'

t.setTimeout(300_000)

const needsTwoCores = { skip: availableParallelism() < 2 && 'it takes two cores' }

async function untilServing(server: TestServer, count: number): Promise<HostInfo[]> {
  return until(async () => {
    const hosts = serving((await server.status()).hosts)
    return hosts.length === count && hosts
  })
}

t.test('work that fills a core gets a second host, at once from the one in reserve', needsTwoCores, async (t) => {
  const server = await startServer(t, [...QUICK, '--max-hosts', '2', '--standby-hosts', '1'])
  await server.deploy('work', WORK)
  const [standby] = await until(async () => {
    const reserve = (await server.status()).hosts.filter(
      ({ state, loopUtilization }) => state === 'standby' && loopUtilization > 0,
    )
    return reserve.length > 0 && reserve
  })
  const load = startLoad(t, `${server.url}/work/`, 6)
  const hosts = await untilServing(server, 2)
  t.ok(
    hosts.some(({ id }) => id === standby?.id),
    'it is the one that stood by',
  )
  await until(async () => (await server.status()).hosts.every(({ state, inFlight }) => state === 'standby' || inFlight > 0))
  t.ok((await load.stop()).every(({ status }) => status === 200))
  const { decisions } = await server.status()
  t.match(
    decisions.find(({ action }) => action === 'grow'),
    {
      hostsBefore: 1,
      hostsAfter: 2,
      figures: { readyHosts: 1, panicCpuCores: Number, machineBusyCores: Number, cores: Number },
    },
  )
})

t.test('a host that is not needed any more is drained under load, and no call fails', needsTwoCores, async (t) => {
  const shrinking = ['--shrink-window-ms', '1000', '--shrink-pause-ms', '0', '--grow-pause-ms', '0']
  const server = await startServer(t, [...QUICK, ...shrinking, '--max-hosts', '2'])
  await server.deploy('work', WORK)
  await server.deploy('sleep', SLEEP)
  const work = startLoad(t, `${server.url}/work/`, 6)
  const sleep = startLoad(t, `${server.url}/sleep/`, 20)
  await untilServing(server, 2)
  t.ok((await work.stop()).every(({ status }) => status === 200))
  await untilServing(server, 1)
  await until(async () => (await server.status()).hosts.length === 1)
  t.ok((await sleep.stop()).every(({ status }) => status === 200))
  const { decisions, hosts } = await server.status()
  t.equal(decisions[0]?.action, 'shrink')
  t.ok(serving(hosts).length === 1)
})
