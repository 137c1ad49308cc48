import { spawnSync } from 'node:child_process'
import { renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import type { InvocationRecord } from '@carpool/core'
import { IS_WHOLE } from '../../../test/support/form.ts'
import { MAX_HELD } from '../src/held-refusals.ts'
import { hasFileLimit, limitFiles } from './fixtures/file-limit.ts'
import { ask, fileOf, idsIn, open, record, save } from './fixtures/records.ts'

/** The thread that was started last. */
let newestThread: Worker | undefined
process.on('worker', (thread: Worker) => {
  newestThread = thread
})

/** With pauses: what it waits for takes up to seconds, and the core is for the tests beside. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await setTimeout(2)
}

t.test(
  'while another process holds a lock, records are written, and questions are refused rather than answered without them',
  async (t) => {
    const folder = t.testdir()
    const { ledger, problems } = await open(folder)
    await save(ledger, record(), 0)
    await ledger.usage({ by: 'hour' })
    const shell = new DatabaseSync(fileOf(folder))
    shell.exec('BEGIN IMMEDIATE')
    t.equal((await ledger.invocations({ limit: 9 })).length, 1, 'what is in can be read')
    await Promise.all([save(ledger, record(), 0), save(ledger, record(), 0)])
    await t.rejects(ledger.invocations({ limit: 9 }), { code: 'ledger-unavailable', message: /is locked by another process/ })
    await until(() => problems.length === 1)
    t.equal(ledger.unavailable, undefined)
    shell.exec('ROLLBACK')
    shell.close()
    // By itself, without anything new.
    await until(() => problems.length === 2)
    t.equal(idsIn(folder).length, 3)
    t.match(problems, [{ message: /locked by another process/ }, { message: 'The ledger is written again.' }])
    await ledger.close()
    t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], 3)
  },
)

t.test('threads that die while they bring records in leave out none, and bring in none twice', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const ids: string[] = []
  const through = (): number => Number(ask(folder, 'SELECT sequence FROM totals_through')[0]?.['sequence'])
  // Whether one dies in the middle is chance: it may have brought in all just before.
  let [rounds, halfway] = [0, 0]
  for (; halfway < (IS_WHOLE ? 2 : 1) && rounds < 10; rounds += 1) {
    const records = Array.from({ length: 30_000 }, () => record())
    await Promise.all(records.map((record) => save(ledger, record, 0)))
    const before = ids.length
    ids.push(...records.map(({ id }) => id))
    ledger.usage({ by: 'hour' }).catch(() => {})
    // Without a pause, so that not all is in by then.
    while (through() <= before) await setImmediate()
    await newestThread?.terminate()
    if (through() < ids.length) halfway += 1
    await save(ledger, record({ outcome: 'refused', error: 'saturated' }), 0)
    t.equal(ledger.unavailable, undefined)
    ids.push((await ledger.invocations({ limit: 1 }))[0]?.id ?? '')
  }
  t.strictSame(idsIn(folder), ids)
  t.ok(halfway > 0, `${halfway} of ${rounds} died halfway`)
  t.match(await ledger.usage({ by: 'function' }), [{ invocations: rounds * 30_000, refused: rounds }])
  t.match(problems.slice(0, 2), [{ message: /it is started again/, cause: Error }, { message: 'The ledger is written again.' }])
  t.equal(problems.length, 2 * rounds)
  await ledger.close()
})

t.test('if the file is moved away, a new one is begun, with what comes then', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  await save(ledger, record(), 0)
  t.equal((await ledger.usage({ by: 'hour' })).length, 1)
  for (const ending of ['', '-wal', '-shm']) renameSync(`${fileOf(folder)}${ending}`, `${fileOf(folder)}${ending}.old`)
  const next = record()
  await save(ledger, next, 0)
  await until(() => problems.length === 2)
  t.match(problems, [{ cause: { message: /was moved or deleted/ } }, { message: 'The ledger is written again.' }])
  t.strictSame(await ledger.invocations({ limit: 9 }), [next])
  await ledger.close()
})

const limits = hasFileLimit ? {} : { skip: 'prlimit is not here' }

t.test('a journal that takes only part of a block is cut back, and takes all of it once there is room', limits, async (t) => {
  t.teardown(() => limitFiles(undefined))
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const path = join(folder, 'ledger-journal-1')
  const given: string[] = []
  const saveSome = async (count: number): Promise<void> => {
    const records = Array.from({ length: count }, () => record())
    given.push(...records.map(({ id }) => id))
    await Promise.all(records.map((record) => save(ledger, record, 0)))
  }
  await saveSome(5)
  for (const room of [0, 1, 8, 100, 500]) {
    const { size } = statSync(path)
    limitFiles(size + room)
    const written = saveSome(7)
    await until(() => ledger.unavailable !== undefined)
    t.equal(ledger.unavailable, 'The ledger cannot be written (EFBIG).')
    t.equal(statSync(path).size, size, `with room for ${room} bytes of a block there is nothing of it`)
    limitFiles(undefined)
    await written
    t.equal(ledger.unavailable, undefined)
  }
  t.match(await ledger.usage({ by: 'function' }), [{ invocations: 40 }])
  await ledger.close()
  t.strictSame(idsIn(folder), given)
  t.ok(problems.every(({ message, lost }) => lost === undefined && !message.includes('damaged')))
  t.equal(problems.filter(({ message }) => message === 'The ledger cannot be written (EFBIG).').length, 5)
})

const refused = (given: Partial<InvocationRecord> = {}): InvocationRecord =>
  record({ outcome: 'refused', error: 'ledger-unavailable', status: 503, host: 0, cpuUs: 0, attempts: 0, ...given })

t.test('calls that are refused because nothing can be written have their records once it can be', limits, async (t) => {
  t.teardown(() => limitFiles(undefined))
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const ran = record()
  await save(ledger, ran, 0)
  limitFiles(statSync(join(folder, 'ledger-journal-1')).size)
  const late = record()
  const written = save(ledger, late, 0)
  await until(() => ledger.unavailable !== undefined)
  const held = Array.from({ length: MAX_HELD + 7 }, (_, index) => refused({ functionName: index < 3 ? 'first' : 'more' }))
  t.strictSame(
    held.map((record) => ledger.hold(record)).lastIndexOf(true),
    MAX_HELD - 1,
    'there is room for so many, and no more',
  )
  limitFiles(undefined)
  await written
  await until(() => problems.length === 3)
  t.match(problems.slice(0, 2), [
    { message: 'The ledger cannot be written (EFBIG).' },
    { message: 'The ledger is written again.' },
  ])
  t.match(problems[2]?.message, /^7 calls that were refused have no record: .* more than 10000 were refused\.$/)
  const next = record()
  await save(ledger, next, 0)
  t.match(await ledger.usage({ by: 'function' }), [
    { key: 'first', invocations: 0, refused: 3 },
    { key: 'hello', invocations: 3, refused: 0 },
    { key: 'more', invocations: 0, refused: MAX_HELD - 3 },
  ])
  const again = refused()
  t.ok(ledger.hold(again), 'there is room again')
  await ledger.close()
  t.strictSame(
    idsIn(folder),
    [ran, late, ...held.slice(0, MAX_HELD), next, again].map(({ id }) => id),
    'each once',
  )
  t.equal(problems.length, 3)
})

t.test('refusals that are held at the end are written, or told to the operator', limits, async (t) => {
  t.teardown(() => limitFiles(undefined))
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  limitFiles(0)
  const unwritten = save(ledger, record(), 0).catch(() => {})
  await until(() => ledger.unavailable !== undefined)
  const kept = refused()
  ledger.hold(kept)
  const closed = ledger.close()
  limitFiles(undefined)
  await Promise.all([closed, unwritten])
  t.ok(idsIn(folder).includes(kept.id))
  const late = refused()
  ledger.hold(late)
  t.strictSame(problems.at(-1)?.lost, [late])
})

t.test('what cannot be written until the end goes to the operator; what is written stays in the journal', limits, async (t) => {
  t.teardown(() => limitFiles(undefined))
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const shell = new DatabaseSync(fileOf(folder))
  shell.exec('BEGIN IMMEDIATE')
  const written = record()
  await save(ledger, written, 0)
  limitFiles(0)
  const lost = Array.from({ length: 100_000 }, () => record())
  const [first, ...others] = lost
  const late = t.rejects(save(ledger, first ?? record(), 0), {
    code: 'ledger-unavailable',
    message: 'The invocation could not be recorded within 2 s.',
  })
  await until(() => ledger.unavailable !== undefined)
  const writes = Promise.allSettled(others.map((record) => save(ledger, record, 0)))
  const overMuch = record()
  await t.rejects(save(ledger, overMuch, 0), { code: 'ledger-unavailable' })
  const full = problems.find(({ message }) => message === 'More than 100000 records wait for the ledger.')
  t.strictSame(full?.lost, [overMuch])
  await late
  await ledger.close()
  limitFiles(undefined)
  shell.close()
  t.equal((await writes).filter(({ status }) => status === 'rejected').length, others.length)
  const problem = problems.find(({ message }) => message === '100000 records could not be written to the ledger before the end.')
  t.equal(problem?.lost?.length, lost.length)
  t.ok(problem?.lost?.every((record, index) => record === lost[index]))
  t.match(problems.at(-1), { message: /^What is left in the journal is brought into the ledger when it is opened again/ })
  t.strictSame(idsIn(folder), [])
  const again = await open(folder)
  t.strictSame(await again.ledger.invocations({ limit: 9 }), [written])
  await again.ledger.close()
  t.strictSame(again.problems, [])
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
  const finished = runWithMounts('mount -t tmpfs -o size=4m none "$1"; exec "$2" "$3" "$1"', t.testdir())
  if (finished === undefined) {
    t.pass('mounts are not allowed here')
    return
  }
  t.equal(finished.stderr, '')
  t.match(JSON.parse(finished.stdout), {
    unavailable: /^The disk of the data folder is full: the ledger cannot be written\.$/,
    refusal: 'ledger-unavailable',
    isAvailableAfter: true,
    isRefusalRecorded: true,
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
