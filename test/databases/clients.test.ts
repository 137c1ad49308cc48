/** Clients of databases as they are, in a function: what they say of real servers is what they say in Node.js. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { missing, startDatabase, type DatabaseKind } from '../../bench/src/lib/databases/database.ts'
import { FERRETDB, MARIADB, POSTGRES, REDIS } from '../../bench/src/lib/databases/kinds.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { inNode } from '../compat/in-node.ts'
import { startServer } from '../support/server.ts'

const CLIENTS: Readonly<Record<string, DatabaseKind>> = { pg: POSTGRES, mysql: MARIADB, redis: REDIS, mongo: FERRETDB }

/** Runs the cases of a client, in Node.js or in a function. */
const INDEX = (client: string): string => `
import { casesOf } from './${client}.mjs'
import { asJson, runCases } from './run-cases.mjs'
export const run = async (place) => asJson(await runCases(casesOf(JSON.parse(place))))
export default async (request) => new Response(await run(await request.text()))
`

// Packages are installed and databases made first.
t.setTimeout(600_000)

for (const [client, kind] of Object.entries(CLIENTS)) {
  // FerretDB is no package: it is built from source, where that can be had.
  const skip = (process.env['CI'] !== 'true' || kind === FERRETDB) && missing(kind)
  t.test(`${client} does in a function what it does in Node.js`, { skip, timeout: 300_000 }, async (t) => {
    const folder = join(installPackages('test/databases'), 'functions')
    mkdirSync(folder, { recursive: true })
    cpSync(join(import.meta.dirname, 'functions'), folder, { recursive: true })
    cpSync(join(import.meta.dirname, '../compat/run-cases.mjs'), join(folder, 'run-cases.mjs'))
    await using database = await startDatabase(kind)
    const ca = kind === POSTGRES || kind === MARIADB ? readFileSync(join(database.folder, 'ca.pem'), 'utf8') : ''
    const place = JSON.stringify({ port: database.port, ca })
    const entry = join(folder, `index-${client}.mjs`)
    writeFileSync(entry, INDEX(client))
    const expected = JSON.parse(await inNode(entry, place)) as Record<string, unknown>
    const server = await startServer(t, [
      '--allow-egress',
      '127.0.0.1',
      '--allow-egress',
      '::1',
      '--max-bundle-bytes',
      '33554432',
    ])
    await server.json('deploy', entry, '--name', client, '--timeout-ms', '60000', '--cpu-ms', '30000')
    const response = await server.get(`/${client}/`, { method: 'POST', body: place })
    const text = await response.text()
    t.equal(response.status, 200, text)
    const found = JSON.parse(text) as Record<string, unknown>
    for (const [name, value] of Object.entries(expected)) {
      t.notMatch(value, { thrown: String }, `${name} works in Node.js`)
      t.same(found[name], value, name)
    }
  })
}
