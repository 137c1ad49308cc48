import t from 'tap'
import { orderOf, pairedRatio, type Run } from '../src/http/rounds.ts'
import type { ServerName } from '../src/http/servers.ts'

t.test('each server takes each place in the order equally often', async (t) => {
  const rounds = [0, 1, 2, 3, 4, 5].map((round) => orderOf(['a', 'b', 'c'], round).join(''))
  t.strictSame(rounds, ['abc', 'bca', 'cab', 'abc', 'bca', 'cab'])
})

t.test('a ratio is taken within the rounds, so that what slows a whole round falls out', async (t) => {
  const run = (round: number, server: ServerName, requestsPerSecond: number) => ({ round, server, requestsPerSecond }) as Run
  const runs = [
    run(0, 'fastify', 1000),
    run(0, 'carpool', 500),
    run(1, 'carpool', 50),
    run(1, 'fastify', 100),
    run(2, 'carpool', 900),
    run(2, 'fastify', 1000),
  ]
  t.equal(pairedRatio(runs, 'carpool', 'fastify'), 0.5)
})
