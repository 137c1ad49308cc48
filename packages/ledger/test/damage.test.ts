import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  cpSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { journalFileName } from '../src/journal-format.ts'
import { MIGRATIONS } from '../src/schema.ts'
import { fileOf, open, record, save } from './fixtures/records.ts'

const PAGE_BYTES = 4096
const REFUSAL = {
  code: 'data-unusable',
  message: /^The ledger, ledger\.sqlite in the data folder, is damaged\. Move it away.*a new ledger is begun/,
}

async function write(folder: string, count: number): Promise<void> {
  const { ledger } = await open(folder)
  await Promise.all(Array.from({ length: count }, () => save(ledger, record({ outcome: 'exception' }), 0)))
  await ledger.close()
}

function overwrite(path: string, position: number, bytes: Uint8Array): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, position)
  closeSync(file)
}

const DAMAGES: Record<string, (path: string) => void> = {
  'text': (path) => writeFileSync(path, 'x'.repeat(3 * PAGE_BYTES)),
  'random': (path) => writeFileSync(path, randomBytes(PAGE_BYTES)),
  'short text': (path) => writeFileSync(path, 'hello'),
  'without a header': (path) => overwrite(path, 0, new Uint8Array(100)),
  'cut to half': (path) => truncateSync(path, Math.floor(statSync(path).size / 2 / PAGE_BYTES) * PAGE_BYTES),
  'cut within a page': (path) => truncateSync(path, statSync(path).size - PAGE_BYTES - 100),
  'cut to one page': (path) => truncateSync(path, PAGE_BYTES),
  'with a page of zeros': (path) => overwrite(path, statSync(path).size - PAGE_BYTES, new Uint8Array(PAGE_BYTES)),
  'with a page of noise': (path) => overwrite(path, statSync(path).size - 2 * PAGE_BYTES, randomBytes(PAGE_BYTES)),
  'without a table': (path) => {
    const database = new DatabaseSync(path)
    database.exec('DROP TABLE totals')
    database.close()
  },
  'of another program': (path) => {
    writeFileSync(path, '')
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE invocations (name)')
    database.close()
  },
}

/** A folder with a sound ledger, which is not changed. */
const sound = t.testdir()
await write(sound, 2_000)

for (const [name, damage] of Object.entries(DAMAGES)) {
  t.test(`a ledger that is ${name} is refused and stays as it is`, async (t) => {
    const folder = t.testdir()
    cpSync(sound, folder, { recursive: true })
    damage(fileOf(folder))
    const content = readFileSync(fileOf(folder))
    await t.rejects(open(folder), REFUSAL)
    t.equal(readFileSync(fileOf(folder)).length, content.length)
  })
}

t.test('a log of a killed process that is garbage at its end loses only that', async (t) => {
  const folder = t.testdir()
  await write(folder, 10)
  writeFileSync(`${fileOf(folder)}-wal`, randomBytes(10_000))
  appendFileSync(`${fileOf(folder)}-wal`, 'x')
  const { ledger, problems } = await open(folder)
  t.match(await ledger.usage({ by: 'function' }), [{ invocations: 10 }])
  await ledger.close()
  t.strictSame(problems, [])
})

t.test('a large file is checked without a word, and damage in it is found while the server runs', async (t) => {
  const folder = t.testdir()
  await write(folder, 60_000)
  const before = await open(folder)
  t.match(await before.ledger.usage({ by: 'function' }), [{ invocations: 60_000 }])
  await before.ledger.close()
  t.strictSame(before.problems, [])

  t.ok(statSync(fileOf(folder)).size > 4 * 1024 * 1024)
  overwrite(fileOf(folder), Math.floor(statSync(fileOf(folder)).size / 2 / PAGE_BYTES) * PAGE_BYTES, randomBytes(PAGE_BYTES))
  const { ledger, problems } = await open(folder)
  while (ledger.unavailable === undefined) await setTimeout(2)
  t.match(ledger.unavailable, REFUSAL.message)
  t.match(problems, [{ message: REFUSAL.message }])
  await ledger.close()
})

t.test('a ledger of a newer version is refused, with both versions, and stays as it is', async (t) => {
  const folder = t.testdir()
  await write(folder, 1)
  const database = new DatabaseSync(fileOf(folder))
  database.exec('PRAGMA user_version = 99')
  database.close()
  const message = `The data folder was written by a newer Carpool: its ledger has version 99, and this Carpool reads up to ${MIGRATIONS.length}.`
  for (let i = 0; i < 2; i += 1) await t.rejects(open(folder), { code: 'data-unusable', message })
})

t.test('a ledger of each older version is brought up to date', async (t) => {
  for (let version = 0; version < MIGRATIONS.length; version += 1) {
    const folder = t.testdir()
    const database = new DatabaseSync(fileOf(folder))
    for (const migration of MIGRATIONS.slice(0, version)) database.exec(migration)
    database.exec(`PRAGMA user_version = ${version}`)
    database.close()
    await write(folder, 3)
    const after = new DatabaseSync(fileOf(folder))
    t.strictSame({ ...after.prepare('PRAGMA user_version').get() }, { user_version: MIGRATIONS.length })
    t.strictSame({ ...after.prepare('SELECT count(*) AS n FROM invocations').get() }, { n: 3 })
    after.close()
  }
})

t.test('a named pipe in place of a file of the journal is told, and not waited for', async (t) => {
  const folder = t.testdir()
  execFileSync('mkfifo', [join(folder, journalFileName(1))])
  await t.rejects(open(folder), { code: 'data-unusable', message: /^.*journal.* in the data folder is no file/ })
})
