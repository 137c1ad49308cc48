import t from 'tap'
import { CLAIMS } from '../src/claims/claims.ts'
import { checkRatios, resultsByConnections } from '../src/http/checks.ts'
import { orderOf, pairedRatio, requestOf } from '../src/http/rounds.ts'
import { serversFor, startServer, type ServerName } from '../src/http/servers.ts'
import { WORKLOAD, WORKLOADS } from '../src/http/workloads.ts'
import type { Environment } from '../src/lib/environment.ts'

const run = (round: number, server: ServerName, requestsPerSecond: number, connections = 64) => ({
  round,
  server,
  connections,
  requestsPerSecond,
})

t.test('each server takes each place in the order equally often', async (t) => {
  const rounds = [0, 1, 2, 3, 4, 5].map((round) => orderOf(['a', 'b', 'c'], round).join(''))
  t.strictSame(rounds, ['abc', 'bca', 'cab', 'abc', 'bca', 'cab'])
})

t.test('a ratio is taken within the rounds, so that what slows a whole round falls out', async (t) => {
  const runs = [
    run(0, 'fastify', 1000),
    run(0, 'carpool', 500),
    run(1, 'carpool', 50),
    run(1, 'fastify', 100),
    run(2, 'carpool', 900),
    run(2, 'fastify', 1000),
  ]
  t.equal(pairedRatio(runs, 'carpool', 'fastify'), 0.5)
  t.equal(pairedRatio(runs.toReversed(), 'carpool', 'fastify'), 0.5, 'in whichever order they are')
  t.equal(pairedRatio(runs, 'carpool', 'split'), undefined, 'no such server')
})

/** Two rounds over 1, 64 and 1,000 connections. */
const RUNS = [0, 1].flatMap((round) => [
  run(round, 'carpool', 7_000, 1),
  run(round, 'split', 10_000, 1),
  run(round, 'carpool', 20_000),
  run(round, 'fastify', 80_000),
  run(round, 'workerd', 10_000),
  run(round, 'split', 40_000),
  run(round, 'carpool', 18_000, 1000),
  run(round, 'split', 30_000, 1000),
])

t.test('each number of connections has results of its own, the usual one first', async (t) => {
  const results = resultsByConnections(RUNS)
  t.strictSame(
    results.map(({ connections, ratios, ownRatio, runs }) => [connections, ratios, ownRatio, runs.length]),
    [
      [64, { fastify: 0.25, workerd: 2, split: 0.5 }, undefined, 8],
      [1, { split: 0.7 }, 0.35, 4],
      [1000, { split: 0.6 }, 0.9, 4],
    ],
  )
  t.strictSame(
    checkRatios(results, 'hello').map(({ kind, claim, isMet }) => [kind, claim.split(',').slice(0, -1).join(','), isMet]),
    [
      ['aim', 'Carpool against Fastify', false],
      ['aim', 'Carpool against workerd', true],
      ['aim', 'Carpool against the smallest split server', false],
      ['aim', 'Carpool against the smallest split server over one connection', true],
      ['aim', 'Carpool over 1,000 connections against itself over 64', true],
    ],
  )
  t.strictSame(checkRatios(results, 'json'), [], 'the aims are those of a hello')
})

t.test('the claim of the texts reads what was measured over 64 connections', async (t) => {
  const [first, ...otherConnections] = resultsByConnections(RUNS)
  const claim = CLAIMS.find(({ name }) => name === 'http')
  const verdicts = checkRatios(resultsByConnections(RUNS), 'hello')
  const reading = claim?.read({ environment: {} as Environment, verdicts, results: { ...first, otherConnections } })
  t.equal(reading?.text, '0.25x Fastify without isolation (the aim is at least 0.45x), 2.00x workerd')
  t.match(reading?.figures, { 'against Fastify': { value: 0.25 }, 'against workerd': { value: 2 } })
})

t.test('servers that cannot do a workload are left out', async (t) => {
  t.strictSame(serversFor({ workload: 'hello', checkout: undefined }), [
    'fastify',
    'carpool',
    'workerd',
    'functions-framework',
    'split',
  ])
  const others = serversFor({ workload: 'timer', checkout: '/elsewhere' })
  t.strictSame([others.includes('carpool-before'), others.includes('split')], [true, false])
})

for (const workload of WORKLOADS) {
  t.test(`servers besides Carpool answer the workload ${workload}`, async (t) => {
    const names = serversFor({ workload, checkout: undefined }).filter((name) => name !== 'carpool')
    for (const name of names) {
      await using server = await startServer(name, { workload, checkout: undefined })
      const response = await fetch(server.url, requestOf(WORKLOAD[workload]))
      t.strictSame([response.status, await response.text()], [200, WORKLOAD[workload].answer], name)
    }
  })
}

t.test('the JSON document has 1 KB', async (t) => {
  t.equal(Buffer.byteLength(WORKLOAD.json.body ?? ''), 1024)
})
