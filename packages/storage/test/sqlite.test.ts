import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'
import t from 'tap'
import {
  describeFailure,
  isDamage,
  openForReading,
  openForWriting,
  resultCode,
  transact,
  unusable,
  type OpenOptions,
} from '../src/index.ts'

const STORE = { name: 'shelf', file: 'shelf.sqlite', damaged: 'The shelf is damaged.' }
const FIRST = 'CREATE TABLE books (title TEXT NOT NULL) STRICT'
const SECOND = 'ALTER TABLE books ADD COLUMN pages INTEGER'
const OPTIONS: OpenOptions = { store: STORE, migrations: [FIRST], busyTimeoutMs: 0, synchronous: 'FULL' }

function caught(work: () => unknown): unknown {
  try {
    work()
  } catch (cause) {
    return cause
  }
  throw new Error('It did not throw.')
}

const pathIn = (folder: string): string => join(folder, 'shelf.sqlite')
const countOf = (database: DatabaseSync): unknown => database.prepare('SELECT count(*) AS n FROM books').get()?.['n']

t.test('what a transaction did is there as a whole or not at all', async (t) => {
  const database = openForWriting(pathIn(t.testdir()), OPTIONS)
  t.teardown(() => database.close())
  t.equal(
    transact(database, () => database.prepare('INSERT INTO books VALUES (?)').run('one').changes),
    1,
  )
  const failure = new Error('no more')
  const cause = caught(() =>
    transact(database, () => {
      database.exec(`INSERT INTO books VALUES ('two')`)
      throw failure
    }),
  )
  t.equal(cause, failure)
  t.equal(countOf(database), 1)
  t.notOk(database.isTransaction)
})

t.test('a store of each older version is brought up to date once, and only its owner can read it', async (t) => {
  const path = pathIn(t.testdir())
  openForWriting(path, OPTIONS).close()
  t.equal(statSync(path).mode & 0o077, 0)
  for (let i = 0; i < 2; i++) {
    const database = openForWriting(path, { ...OPTIONS, migrations: [FIRST, SECOND] })
    database.exec(`INSERT INTO books VALUES ('one', 1)`)
    t.equal(countOf(database), i + 1)
    database.close()
  }
})

t.test('a step that fails leaves the version before it', async (t) => {
  const path = pathIn(t.testdir())
  t.throws(() => openForWriting(path, { ...OPTIONS, migrations: [FIRST, `${SECOND}; no such statement`] }))
  const database = openForWriting(path, OPTIONS)
  t.teardown(() => database.close())
  t.equal(database.prepare('PRAGMA user_version').get()?.['user_version'], 1)
  t.throws(() => database.prepare('SELECT pages FROM books'))
})

t.test('a store of a newer version is refused with both versions, and stays as it is', async (t) => {
  const path = pathIn(t.testdir())
  openForWriting(path, { ...OPTIONS, migrations: [FIRST, SECOND] }).close()
  const message = 'The data folder was written by a newer Carpool: its shelf has version 2, and this Carpool reads up to 1.'
  for (let i = 0; i < 2; i++) t.throws(() => openForWriting(path, OPTIONS), { code: 'data-unusable', message })
})

t.test('one that is exclusive keeps others out until it is closed', async (t) => {
  const path = pathIn(t.testdir())
  const first = openForWriting(path, { ...OPTIONS, isExclusive: true })
  const cause = caught(() => openForWriting(path, OPTIONS))
  t.equal(resultCode(cause), 'busy')
  t.equal(unusable(STORE, cause).message, 'The shelf, shelf.sqlite in the data folder, is locked by another process.')
  first.close()
  openForWriting(path, OPTIONS).close()
})

t.test('who reads cannot write', async (t) => {
  const path = pathIn(t.testdir())
  openForWriting(path, OPTIONS).close()
  const database = openForReading(path, 0)
  t.teardown(() => database.close())
  t.equal(countOf(database), 0)
  t.equal(resultCode(caught(() => database.exec(`INSERT INTO books VALUES ('one')`))), 'read-only')
})

t.test('what is no database, and what lacks a table, is told as damaged', async (t) => {
  const path = pathIn(t.testdir({ 'shelf.sqlite': 'x'.repeat(8192) }))
  const cause = caught(() => openForWriting(path, OPTIONS))
  t.equal(resultCode(cause), 'not-a-database')
  t.ok(isDamage(cause))
  t.match(unusable(STORE, cause), { code: 'data-unusable', message: STORE.damaged })
  const empty = new DatabaseSync(':memory:')
  t.teardown(() => empty.close())
  t.equal(
    unusable(
      STORE,
      caught(() => countOf(empty)),
    ).message,
    STORE.damaged,
  )
})

t.test('what the system says is told without its paths, and what is an error of ours stays', async (t) => {
  const folder = t.testdir()
  const missing = caught(() => openForReading(join(folder, 'none.sqlite'), 0))
  t.equal(describeFailure(STORE, missing), 'The shelf, shelf.sqlite in the data folder, cannot be opened.')
  const system = caught(() => writeFileSync(folder, ''))
  t.equal(resultCode(system), undefined)
  t.equal(describeFailure(STORE, system), 'The shelf, shelf.sqlite in the data folder, cannot be used (EISDIR).')
  const ours = new CarpoolError('not-found', 'No.')
  t.equal(unusable(STORE, ours), ours)
  t.equal(resultCode('text'), undefined)
})

t.test('a full database is told as a full disk', async (t) => {
  const database = openForWriting(pathIn(t.testdir()), OPTIONS)
  t.teardown(() => database.close())
  database.exec('PRAGMA max_page_count = 3')
  const insert = database.prepare('INSERT INTO books VALUES (?)')
  const cause = caught(() =>
    transact(database, () => {
      for (let i = 0; i < 100; i++) insert.run('x'.repeat(1000))
    }),
  )
  t.equal(resultCode(cause), 'full')
  t.match(describeFailure(STORE, cause), /^The disk of the data folder is full/)
  t.equal(countOf(database), 0)
})
