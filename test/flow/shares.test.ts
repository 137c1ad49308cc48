/** Shares are those of owners first: many functions of one take no more than the one function of another. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { CreatedToken } from '@carpool/core'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { readLedger, type LedgerRow } from '../support/ledger.ts'
import { startServer, type TestServer, until } from '../support/server.ts'

// Many calls that compute, on a machine that may have much else to do.
t.setTimeout(300_000)

/** That one owner has. */
const FUNCTIONS = IS_WHOLE ? 20 : 10
/** Calls of the one function; the others have five times as many, all together. */
const CALLS = 20
/** Of each call of the one function: some seconds in all, beside which it is little what others use at the start and the end. */
const ROUNDS = 60

/** Logs as many lines and computes as often as the query says. It may wait for a gate before, and for another one to end. */
const WORKER = `
  let start
  let stop
  let isStopped = false
  export default {
    async fetch(request) {
      const query = new URL(request.url).searchParams
      const [lines, rounds, steps] = ['lines', 'rounds', 'steps'].map((key) => Number(query.get(key)))
      for (let line = 0; line < lines; line++) console.log('line ' + line)
      if (query.has('stop')) stop ??= fetch(query.get('stop')).then(() => { isStopped = true })
      if (query.has('start')) await (start ??= fetch(query.get('start')))
      let sum = 0
      for (let round = 0; round < rounds && !isStopped; round++) {
        // Each has an entry of its own.
        await new Promise((resolve) => setTimeout(resolve))
        for (let step = 0; step < steps; step++) sum += step % 7
      }
      return new Response(String(sum))
    }
  }`

const namesOf = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `many-${index}`)
const MANY = namesOf(FUNCTIONS)

/** One host with one permit, so that its scheduler alone decides who runs; these functions of one owner, one of another. */
async function startShared(t: Test, many: readonly string[], ...args: string[]): Promise<TestServer> {
  const server = await startServer(t, ['--max-hosts', '1', '--entered-isolates', '1', ...args])
  const tokenOf = async (owner: string): Promise<string> =>
    (await server.json<CreatedToken>('token', 'create', '--owner', owner, '--scope', 'deploy')).token
  const [ofMany, ofOne] = [await tokenOf('many'), await tokenOf('one')]
  // Many rounds of one call are far above the default of its CPU limit, and on a busy machine above that of its wall limit.
  const limits = ['--cpu-ms', '10000', '--timeout-ms', '240000']
  for (const name of many) await server.deploy(name, WORKER, ...limits, '--token', ofMany)
  await server.deploy('one', WORKER, ...limits, '--token', ofOne)
  // What their calls cost is known from then on.
  await Promise.all([...many, 'one'].map((name) => call(server, name)))
  return server
}

const STEPS = 2_000_000

/** @returns how it ended */
async function call(server: TestServer, name: string, query = `rounds=2&steps=${STEPS}`): Promise<string> {
  const response = await server.get(`/${name}/?${query}`)
  const text = await response.text()
  return response.ok ? 'answered' : (JSON.parse(text) as { detail: string }).detail
}

/** Of all its functions, in the order in which calls ended. */
async function recordsOf(server: TestServer): Promise<LedgerRow[]> {
  await server.recorded()
  return readLedger(server.dataDir)
}

// All calls are in the host, whose scheduler alone decides then, however late the server gets a core.
const IN_HOST = ['--host-limit-initial', '500', '--host-limit-min', '500', '--run-delay-target-ms', '1000']
const GATE = '127.0.0.1'
const server = await startShared(t, MANY, ...IN_HOST, '--allow-egress', GATE)

t.test('of a full CPU the owner of one function gets its share beside the owner of many, who has more callers', async (t) => {
  const before = (await recordsOf(server)).length
  const asked: Record<string, ServerResponse[]> = { '/start': [], '/stop': [] }
  const gates = createServer(({ url }, response) => asked[url!]!.push(response)).listen(0, GATE)
  t.teardown(() => gates.close())
  await once(gates, 'listening')
  const open = (gate: string): void => asked[gate]!.forEach((response) => response.end())
  const gate = `http://${GATE}:${(gates.address() as AddressInfo).port}`
  const names = MANY.flatMap((name) => Array<string>((5 * CALLS) / FUNCTIONS).fill(name))
  const query = `steps=${STEPS}&start=${gate}/start`
  const calls = Promise.all(names.map((name) => call(server, name, `${query}&rounds=1e9&stop=${gate}/stop`)))
  const callsOfOne = Promise.all(Array.from({ length: CALLS }, () => call(server, 'one', `${query}&rounds=${ROUNDS}`)))
  await until(async () => asked['/start']!.length === FUNCTIONS + 1 && (await server.status()).inFlight === 6 * CALLS)
  open('/start')
  t.same(new Set(await callsOfOne), new Set(['answered']))
  open('/stop')
  t.same(new Set(await calls), new Set(['answered']))
  const records = (await recordsOf(server)).slice(before)
  const usedBy = (isMine: (name: unknown) => boolean): number =>
    records.filter((record) => isMine(record['function'])).reduce((sum, record) => sum + Number(record['cpu_us']), 0)
  const [one, many] = [usedBy((name) => name === 'one'), usedBy((name) => name !== 'one')]
  // By what waits it would be a fifth.
  t.ok(one >= 0.5 * many && many >= 0.5 * one, `${one} us of the one, ${many} us of the many`)
})

t.test('a full queue pushes out calls of the owner who has the most in it', async (t) => {
  const names = namesOf(5)
  const server = await startShared(t, names, '--max-queued', '40')
  const many = Promise.all(names.flatMap((name) => Array.from({ length: 16 }, () => call(server, name))))
  const one = Promise.all(Array.from({ length: 16 }, () => call(server, 'one')))
  t.same(new Set(await one), new Set(['answered']))
  t.ok((await many).some((how) => how.includes('the limit of 40 waiting calls was reached')))
})

t.test('what owners log beyond what one function may is limited for all together, and nobody loses the rest', async (t) => {
  const log = async (name: string, lines: number): Promise<void> => {
    t.equal((await server.get(`/${name}/?lines=${lines}`)).status, 200)
  }
  await Promise.all([...MANY.map((name) => log(name, 1_000)), log('one', 1_000)])
  await server.stop()
  const folder = join(server.dataDir, 'logs')
  const linesOf = (is: (file: string) => boolean): number =>
    readdirSync(folder)
      .filter(is)
      .flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
      .filter((line) => line.includes('"line ')).length
  t.equal(
    linesOf((file) => file.startsWith('one.')),
    1_000,
  )
  const ofMany = linesOf((file) => file.startsWith('many-'))
  t.ok(ofMany > 5_000 && ofMany < 10_000, `${ofMany} lines`)
  for (const name of MANY) t.ok(linesOf((file) => file.startsWith(`${name}.`)) > 0, `${name} has something`)
})
