/** Shares are those of owners first: many functions of one take no more than the one function of another. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CreatedToken } from '@carpool/core'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { readLedger, type LedgerRow } from '../support/ledger.ts'
import { startServer, type TestServer } from '../support/server.ts'

// Many calls that compute, on a machine that may have much else to do.
t.setTimeout(300_000)

/** Calls that end before any counts: isolates are made, code is compiled, and the first that came were let in by what waited. */
const SETTLING = IS_WHOLE ? 200 : 100
/** Calls whose CPU time is compared. */
const COUNTED = IS_WHOLE ? 300 : 150
/** That one owner has. */
const FUNCTIONS = IS_WHOLE ? 20 : 10
/** Of the one function; the others have five times as many, all together. What they have sent at the end is computed as well. */
const CALLERS = IS_WHOLE ? 24 : 16

/** Computes and logs as much as the query says. */
const WORKER = `
  export default {
    async fetch(request) {
      const query = new URL(request.url).searchParams
      const [lines, steps] = [Number(query.get('lines')), Number(query.get('steps'))]
      for (let line = 0; line < lines; line++) console.log('line ' + line)
      let sum = 0
      for (let step = 0; step < steps; step++) sum += step % 7
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
  for (const name of many) await server.deploy(name, WORKER, '--token', ofMany)
  await server.deploy('one', WORKER, '--token', ofOne)
  // What their calls cost is known from then on.
  await Promise.all([...many, 'one'].map((name) => call(server, name)))
  return server
}

const STEPS = 4_000_000
/**
 * So few that calls end within their first slice, also on a slow machine: then the one permit alone decides who runs. With fewer,
 * the callers are too slow on a busy machine to have calls wait all the time.
 */
const SHORT_STEPS = 2_000_000

/** @returns how it ended */
async function call(server: TestServer, name: string, steps = STEPS): Promise<string> {
  const response = await server.get(`/${name}/?steps=${steps}`)
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
const server = await startShared(t, MANY, ...IN_HOST)

t.test('of a full CPU the owner of one function gets its share beside the owner of many, who has more callers', async (t) => {
  const before = (await recordsOf(server)).length
  let answered = 0
  const keepCalling = async (name: string): Promise<void> => {
    while (answered < SETTLING + COUNTED) {
      t.equal(await call(server, name, SHORT_STEPS), 'answered')
      answered++
    }
  }
  const callers = [
    ...MANY.flatMap((name) => Array<string>((5 * CALLERS) / FUNCTIONS).fill(name)),
    ...Array<string>(CALLERS).fill('one'),
  ]
  await Promise.all(callers.map(keepCalling))
  // What is under way at the end was let in by what waits, not by shares.
  const counted = (await recordsOf(server)).slice(before + SETTLING, before + SETTLING + COUNTED)
  const usedBy = (isMine: (name: unknown) => boolean): number =>
    counted.filter((record) => isMine(record['function'])).reduce((sum, record) => sum + Number(record['cpu_us']), 0)
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
