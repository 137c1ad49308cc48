/**
 * A pool that all calls of a function share, while its database dies, stands still and comes back, again and again: nothing is
 * left over.
 */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connectionsTo } from '../../bench/src/lib/databases/connections.ts'
import { type Database, missing, startDatabase, type DatabaseKind } from '../../bench/src/lib/databases/database.ts'
import { FERRETDB, MARIADB, POSTGRES, REDIS } from '../../bench/src/lib/databases/kinds.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { sampleProcess } from '../isolation/harness/process-sample.ts'
import { pidOf } from '../isolation/support-b/server-process.ts'
import { IS_WHOLE } from '../support/form.ts'
import { startLoad, type Called } from '../support/load.ts'
import { startServer, until, type TestServer } from '../support/server.ts'

/** With the connections that a client has at most. */
const POOLS: Readonly<Record<string, readonly [kind: DatabaseKind, connections: number]>> = {
  pg: [POSTGRES, 10],
  mysql: [MARIADB, 10],
  redis: [REDIS, 1],
  mongodb: [FERRETDB, 11],
}
/** How often each outage is. Heaps have grown to what they need by then. */
const [WARM_ROUNDS, ROUNDS] = IS_WHOLE ? [2, 2] : [0, 1]
const CALLS = IS_WHOLE ? 10_000 : 1_000
const CALLERS = 200
/** What is not collected yet differs by some 30 MB: what every call leaves behind is seen from a few kilobytes on. */
const MOST_GROWTH_MB = 64

const isGood = ({ status }: Called): boolean => status === 200
const isBad = (answer: Called): boolean => !isGood(answer)

interface Held {
  readonly pids: readonly number[]
  /** Open descriptors, */
  readonly descriptors: readonly number[]
  /** and resident memory, of the server and its hosts. */
  readonly residentMb: readonly number[]
}

async function processesOf(server: TestServer): Promise<number[]> {
  return [pidOf(server), ...(await server.status()).hosts.map(({ pid }) => pid)]
}

const descriptorsOf = (pids: readonly number[]): number[] => pids.map((pid) => sampleProcess(pid)?.descriptors ?? Infinity)
const residentOf = (pids: readonly number[]): number[] =>
  pids.map((pid) => Math.round(sampleProcess(pid)?.residentMb ?? Infinity))

/** What is held while nothing is under way. */
async function atRest(server: TestServer): Promise<Held> {
  const port = Number(new URL(server.url).port)
  await until(async () => connectionsTo(port) === 0 && (await server.status()).inFlight === 0)
  const pids = await processesOf(server)
  let [descriptors, same] = [descriptorsOf(pids), 0]
  await until(async () => {
    const now = descriptorsOf(pids)
    same = now.join() === descriptors.join() ? same + 1 : 0
    descriptors = now
    return same === 20
  })
  return { pids, descriptors, residentMb: residentOf(pids) }
}

/** Sockets that the function has, as metrics count them. */
async function openSockets(server: TestServer, name: string): Promise<number> {
  const text = await (await fetch(`${server.adminUrl}/metrics`)).text()
  return Number(new RegExp(`^carpool_open_sockets\\{function="${name}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

// Packages are installed and databases made first.
t.setTimeout(900_000)

for (const [client, [kind, most]] of Object.entries(POOLS)) {
  const skip = (process.env['CI'] !== 'true' && missing(kind)) || (process.platform !== 'linux' && 'it reads /proc')
  t.test(
    `calls of a function share a pool of ${client}, whatever becomes of the database`,
    { skip, timeout: 400_000 },
    async (t) => {
      const folder = join(installPackages('test/databases'), 'functions')
      mkdirSync(folder, { recursive: true })
      cpSync(join(import.meta.dirname, 'functions'), folder, { recursive: true })
      await using database = await startDatabase(kind)
      const entry = join(folder, `load-${client}-${process.pid}.mjs`)
      const deploy = async (text: string): Promise<void> => {
        writeFileSync(entry, text)
        // A call that comes near its CPU limit has others get another isolate, which has a pool of its own.
        await server.json('deploy', entry, '--name', client, '--timeout-ms', '20000', '--cpu-ms', '10000')
      }
      // Another host, which a full CPU would call for, has a pool of its own.
      const flags = ['--max-hosts', '1', '--allow-egress', '127.0.0.1', '--max-bundle-bytes', '33554432']
      const server = await startServer(t, flags)
      const opening = `import open from './pools/${client}.mjs'\nconst ask = open(${database.port})`
      await deploy(`${opening}\nexport default async () => new Response(String(await ask(7)))`)

      // The trial of the deploy may have a connection that is about to end.
      await until(async () => connectionsTo(database.port) <= most && (await openSockets(server, client)) <= most)
      let seen = 0
      /** Calls while something goes on, and gives all answers when that is over. */
      const underLoad = async (
        run: (answers: readonly Called[], look: (isOver: () => boolean) => Promise<void>) => Promise<void>,
      ): Promise<readonly Called[]> => {
        const load = startLoad(t, `${server.url}/${client}/`, CALLERS)
        await run(load.answers, async (isOver) => {
          await until(async () => {
            seen = Math.max(seen, connectionsTo(database.port))
            return isOver()
          })
        })
        return load.stop()
      }
      const outages = (rounds: number): Promise<readonly Called[]> =>
        underLoad(async (answers, look) => {
          for (let round = 0; round < rounds; round++) {
            for (const [, fail, mend] of OUTAGES) {
              const [good, bad] = [answers.filter(isGood).length, answers.filter(isBad).length]
              await fail(database)
              await look(() => answers.filter(isBad).length >= bad + most)
              await mend(database)
              // All callers have had an answer from a pool that has its connections again.
              const enough = good + Math.max(2 * CALLERS, CALLS / (rounds * OUTAGES.length))
              await look(() => answers.filter(isGood).length >= enough)
            }
          }
        })

      const calm = await underLoad((answers, look) => look(() => answers.length >= CALLS / 2))
      t.ok(
        calm.every(({ status, body }) => status === 200 && body === '7'),
        `every call is answered: ${calm.find(isBad)?.body ?? 'with 7'}`,
      )
      t.equal(seen, most, `${CALLERS} calls at once have ${most} connections`)
      await outages(WARM_ROUNDS)

      const before = await atRest(server)
      const answers = await outages(ROUNDS)
      const statuses = new Set(answers.map(({ status }) => status))
      t.ok(
        [...statuses].every((status) => status === 200 || status === 500),
        `a call is answered, or fails before its time is over: ${[...statuses].join()}`,
      )
      t.ok(answers.length >= CALLS, `${answers.length} calls, of which ${answers.filter(isBad).length} failed`)
      const longestMs = Math.max(...answers.map(({ ms }) => ms))
      t.comment(`the longest call took ${Math.round(longestMs)} ms`)

      const after = await atRest(server)
      t.same(after.pids, before.pids, 'processes are those that were there')
      await until(async () => descriptorsOf(after.pids).every((count, at) => count <= before.descriptors[at]!))
      t.pass(`descriptors: ${before.descriptors.join(' and ')}, then ${after.descriptors.join(' and ')}`)
      await until(async () => (await openSockets(server, client)) === connectionsTo(database.port))
      t.ok(connectionsTo(database.port) <= most, 'no connection is left over, and all are counted')
      const memory = `MB: ${before.residentMb.join(' and ')}, then ${after.residentMb.join(' and ')}`
      if (IS_WHOLE)
        t.ok(
          after.residentMb.every((size, at) => size < before.residentMb[at]! + MOST_GROWTH_MB),
          memory,
        )

      await deploy('export default () => new Response()')
      await until(async () => connectionsTo(database.port) === 0 && (await openSockets(server, client)) === 0)
      t.pass('connections end with the isolate')
    },
  )
}

type Act = (database: Database) => Promise<void> | void

const OUTAGES: ReadonlyArray<readonly [name: string, fail: Act, mend: Act]> = [
  ['it is killed, and started again', (database) => database.kill(), (database) => database.restart()],
  ['it stands still, and goes on', (database) => database.signal('SIGSTOP'), (database) => database.signal('SIGCONT')],
  ['it stands still, and is started again', (database) => database.signal('SIGSTOP'), (database) => database.restart()],
]
