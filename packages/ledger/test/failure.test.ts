import { spawnSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ask, fileOf, idsIn, open, record } from './fixtures/records.ts'

/** The thread that was started last. */
let newestThread: Worker | undefined
process.on('worker', (thread: Worker) => {
  newestThread = thread
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await setImmediate()
}

t.test('while another process holds a lock, writes fail in time, nothing is lost, and it ends by itself', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const before = record()
  await ledger.write(before, 0)
  const shell = new DatabaseSync(fileOf(folder))
  shell.exec('BEGIN IMMEDIATE')
  const during = [record(), record()]
  const writes = during.map((record) => ledger.write(record, 0))
  for (const write of writes) {
    await t.rejects(write, { code: 'ledger-unavailable', message: 'The invocation could not be recorded within 2 s.' })
  }
  t.match(ledger.unavailable, /locked by another process/)
  t.strictSame((await ledger.invocations({ limit: 9 })).length, 1, 'it can be read meanwhile')
  const after = record()
  const late = ledger.write(after, 0)
  shell.exec('ROLLBACK')
  shell.close()
  await late
  t.equal(ledger.unavailable, undefined)
  t.strictSame(
    idsIn(folder),
    [before, ...during, after].map(({ id }) => id),
  )
  t.match(problems, [{ message: /locked by another process/ }, { message: 'The ledger is written again.' }])
  await ledger.close()
  t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], 4)
})

t.test('it recovers when nothing new comes, too', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  t.teardown(() => ledger.close())
  const shell = new DatabaseSync(fileOf(folder))
  shell.exec('BEGIN IMMEDIATE')
  const write = t.rejects(ledger.write(record(), 0), { code: 'ledger-unavailable' })
  await until(() => ledger.unavailable !== undefined)
  await write
  shell.close()
  await until(() => ledger.unavailable === undefined)
  t.equal(idsIn(folder).length, 1)
})

t.test('what cannot be written until the end goes to the operator, and no more than that', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  await ledger.write(record(), 0)
  const shell = new DatabaseSync(fileOf(folder))
  shell.exec('BEGIN IMMEDIATE')
  const lost = [record(), record({ functionName: 'other', revision: 'bb' })]
  const writes = lost.map((record) => ledger.write(record, 0).catch((error: unknown) => error))
  await ledger.close()
  shell.close()
  t.match(await Promise.all(writes), [{ code: 'ledger-unavailable' }, { code: 'ledger-unavailable' }])
  t.match(problems.at(-1), { message: '2 records could not be written to the ledger before the end.' })
  t.strictSame(problems.at(-1)?.lost, lost)
  t.equal(idsIn(folder).length, 1)
})

t.test('a thread that dies is started again and goes on where it was', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const records = Array.from({ length: 5_000 }, () => record())
  const writes = records.map((record) => ledger.write(record, 0))
  await writes[0]
  const died = newestThread?.terminate()
  await until(() => ledger.unavailable !== undefined)
  await died
  t.equal(ledger.unavailable, 'The thread that writes the ledger ended; it is started again.')
  await Promise.all(writes)
  // If it died after its last batch, nobody waited for the next one.
  await until(() => ledger.unavailable === undefined)
  t.strictSame(
    idsIn(folder),
    records.map(({ id }) => id),
  )
  t.match(problems, [{ message: /it is started again/, cause: Error }, { message: 'The ledger is written again.' }])
  await ledger.close()
  t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], 5_000)
})

t.test('what a thread committed right before it died, and could not tell, is not written again', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  const [before, committed, last] = [record(), record(), record()]
  await ledger.write(before, 0)
  const shell = new DatabaseSync(fileOf(folder))
  shell.exec('BEGIN IMMEDIATE')
  const writes = [ledger.write(committed, 0).catch(() => {}), ledger.write(last, 0).catch(() => {})]
  await newestThread?.terminate()
  // In place of the thread: the moment between the commit and the word of it cannot be hit from outside.
  const values = `2, x'${committed.id.replaceAll('-', '')}'`
  const rest = ask(folder, "SELECT name FROM pragma_table_info('invocations') WHERE cid > 1").map(({ name }) => String(name))
  shell.exec(`INSERT INTO invocations SELECT ${values}, ${rest.join(', ')} FROM invocations; COMMIT`)
  shell.close()
  await Promise.all(writes)
  await until(() => ledger.unavailable === undefined)
  await ledger.close()
  t.strictSame(
    idsIn(folder),
    [before, committed, last].map(({ id }) => id),
  )
  t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], 3)
})

t.test('if the file is moved away, a new one is begun', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  await ledger.write(record(), 0)
  t.equal((await ledger.usage({ by: 'hour' })).length, 1)
  for (const ending of ['', '-wal', '-shm']) renameSync(`${fileOf(folder)}${ending}`, `${fileOf(folder)}${ending}.old`)
  await until(() => problems.length === 2)
  t.match(problems, [{ cause: { message: /was moved or deleted/ } }, { message: 'The ledger is written again.' }])
  const next = record()
  await ledger.write(next, 0)
  t.strictSame(await ledger.invocations({ limit: 9 }), [next])
  await ledger.close()
})

/** Runs a script in a mount namespace of its own, with all rights in it; undefined if the system does not allow that. */
function runWithMounts(script: string, folder: string): { stdout: string; stderr: string; status: number | null } | undefined {
  if (spawnSync('unshare', ['--user', '--map-root-user', '--mount', 'true']).status !== 0) return undefined
  const args = [
    '--user',
    '--map-root-user',
    '--mount',
    'env',
    '-i',
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    'sh',
    '-euc',
    script,
    'sh',
  ]
  const node = [process.execPath, fileURLToPath(new URL('./fixtures/fill-disk.ts', import.meta.url))]
  return spawnSync('unshare', [...args, folder, ...node], { encoding: 'utf8' })
}

t.test('a full disk is told, and when there is room again everything is written', async (t) => {
  const finished = runWithMounts('mount -t tmpfs -o size=1m none "$1"; exec "$2" "$3" "$1"', t.testdir())
  if (finished === undefined) {
    t.pass('mounts are not allowed here')
    return
  }
  t.equal(finished.stderr, '')
  t.match(JSON.parse(finished.stdout), {
    unavailable: /^The disk of the data folder is full: the ledger cannot be written\.$/,
    refusal: 'ledger-unavailable',
    isAvailableAfter: true,
    given: Number,
  })
  const { given, ids, rows, summed } = JSON.parse(finished.stdout) as Record<string, number>
  t.ok((given ?? 0) > 0)
  t.strictSame({ ids, rows, summed }, { ids: given, rows: given, summed: given })
})

t.test('a read-only folder is told at the start', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  await ledger.close()
  const mount = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; exec "$2" "$3" "$1"'
  for (const script of [mount, `rm "$1"/ledger.sqlite; ${mount}`]) {
    const finished = runWithMounts(script, folder)
    if (finished === undefined) {
      t.pass('mounts are not allowed here')
      return
    }
    t.match(
      finished.stderr,
      /data-unusable: The ledger, ledger\.sqlite in the data folder, (is read-only|cannot be opened|cannot be used \(EROFS\))\./,
    )
  }
})
