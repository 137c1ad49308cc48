/** A pool that all calls of a function share, while its database dies, stands still and comes back. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connectionsTo } from '../../bench/src/lib/databases/connections.ts'
import { type Database, missing, startDatabase, type DatabaseKind } from '../../bench/src/lib/databases/database.ts'
import { MARIADB, POSTGRES, REDIS } from '../../bench/src/lib/databases/kinds.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { IS_WHOLE } from '../support/form.ts'
import { startLoad, type Load } from '../support/load.ts'
import { startServer, until } from '../support/server.ts'

/** With what a client's pool holds at most. */
const POOLS: Readonly<Record<string, readonly [kind: DatabaseKind, connections: number]>> = {
  pg: [POSTGRES, 10],
  mysql: [MARIADB, 10],
  redis: [REDIS, 1],
}
const CALLS = IS_WHOLE ? 10_000 : 1_000
const CALLERS = 200
const isGood = ({ status }: { readonly status: number }): boolean => status === 200
const countOf = (load: Load, test: (answer: { readonly status: number }) => boolean): number => load.answers.filter(test).length

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
        await server.json('deploy', entry, '--name', client, '--timeout-ms', '20000')
      }
      const server = await startServer(t, ['--allow-egress', '127.0.0.1', '--max-bundle-bytes', '33554432'])
      const opening = `import { pools } from './pools.mjs'\nconst ask = pools.${client}(${database.port})`
      await deploy(`${opening}\nexport default async () => new Response(String(await ask(7)))`)

      const load = startLoad(t, `${server.url}/${client}/`, CALLERS)
      let seen = 0
      const look = async (isOver: () => boolean): Promise<void> => {
        await until(async () => {
          seen = Math.max(seen, connectionsTo(database.port))
          return isOver()
        })
      }
      await look(() => countOf(load, isGood) >= CALLS / 2)
      t.equal(load.answers.length, countOf(load, isGood), 'every call is answered')
      t.ok(load.answers.every(({ body }) => body === '7'))
      t.equal(seen, most, `${CALLERS} calls at once have ${most} connections`)

      for (const [name, fail, mend] of OUTAGES) {
        const [good, bad] = [countOf(load, isGood), load.answers.length - countOf(load, isGood)]
        await fail(database)
        await look(() => load.answers.length - countOf(load, isGood) > bad)
        await mend(database)
        // All callers have had an answer from a pool that has its connections again.
        await look(() => countOf(load, isGood) >= good + 2 * CALLERS)
        t.pass(name)
      }
      const answered = load.answers.length
      await look(() => load.answers.length >= answered + CALLS / 2)
      await load.stop()
      const statuses = new Set(load.answers.map(({ status }) => status))
      t.ok(
        [...statuses].every((status) => status === 200 || status === 500),
        `a call is answered, or fails: ${[...statuses].join()}`,
      )
      t.ok(connectionsTo(database.port) <= most, 'no connection is left over')

      await deploy('export default () => new Response()')
      await until(async () => connectionsTo(database.port) === 0)
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
