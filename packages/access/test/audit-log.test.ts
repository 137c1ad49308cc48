import { chmodSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditEntry } from '@carpool/core'
import t, { type Test } from 'tap'
import { AuditLog, type AuditLogOptions } from '../src/index.ts'

function entry(given: Partial<AuditEntry> = {}): AuditEntry {
  return { time: '2026-01-01T00:00:00.000Z', action: 'deployFunction', result: 'ok', remoteAddress: '127.0.0.1', ...given }
}

function open(folder: string, options: Partial<AuditLogOptions> = {}) {
  const problems: Array<{ readonly lostEntries: number; readonly cause: unknown }> = []
  const clock = { nowMs: 0 }
  const log = new AuditLog(join(folder, 'audit.ndjson'), {
    clock: () => clock.nowMs,
    onProblem: (problem) => problems.push(problem),
    ...options,
  })
  return { log, problems, clock }
}

const subjects = async (log: AuditLog, limit = 1_000) => (await log.newest(limit)).map(({ subject }) => subject)

t.test('entries are read as they were written, the newest last, also by the next server', async (t) => {
  const folder = t.testdir()
  const { log, problems } = open(folder)
  t.strictSame(await log.newest(5), [])
  const entries = ['a', 'b', 'c'].map((subject) => entry({ subject }))
  for (const each of entries) log.append(each)
  t.strictSame(await log.newest(10), entries)
  t.strictSame(await log.newest(2), entries.slice(1))
  t.strictSame(await log.newest(0), [])
  const { log: next } = open(folder)
  next.append(entry({ subject: 'd' }))
  t.strictSame(await subjects(next, 2), ['c', 'd'])
  t.equal(statSync(join(folder, 'audit.ndjson')).mode & 0o077, 0)
  t.strictSame(problems, [])
})

t.test('one entry is one line, whatever is in it', async (t) => {
  const folder = t.testdir()
  const { log } = open(folder)
  const note = 'a\nb\r\u001b[31m\u0085\u2028\u2029\u009b\ud800'
  log.append(entry({ note }))
  t.match(await log.newest(1), [{ note }])
  const text = readFileSync(join(folder, 'audit.ndjson'), 'utf8')
  t.match(text, /^[\u0020-\u007e]+\n$/)
})

t.test('a file that is full becomes the first of the older ones, and the last of these goes', async (t) => {
  const folder = t.testdir()
  const bytes = Buffer.byteLength(`${JSON.stringify(entry({ subject: '00' }))}\n`)
  const { log } = open(folder, { maxFileBytes: 3 * bytes, olderFiles: 2 })
  for (let i = 10; i < 30; i++) {
    log.append(entry({ subject: String(i) }))
    await log.flush()
  }
  t.strictSame(readdirSync(folder).toSorted(), ['audit.1.ndjson', 'audit.2.ndjson', 'audit.ndjson'])
  for (const file of readdirSync(folder)) t.ok(statSync(join(folder, file)).size <= 3 * bytes)
  t.strictSame(await subjects(log), ['22', '23', '24', '25', '26', '27', '28', '29'])
  t.strictSame(await subjects(log, 4), ['26', '27', '28', '29'])
  const { log: next } = open(folder, { maxFileBytes: 3 * bytes, olderFiles: 2 })
  next.append(entry({ subject: '30' }))
  next.append(entry({ subject: '31' }))
  t.strictSame((await subjects(next)).slice(-3), ['29', '30', '31'])
})

t.test('a line that was cut short is left out, and the next one begins anew', async (t) => {
  const folder = t.testdir({ 'audit.ndjson': `${JSON.stringify(entry({ subject: 'a' }))}\n{"time":"20` })
  const { log } = open(folder)
  log.append(entry({ subject: 'b' }))
  t.strictSame(await subjects(log), ['a', 'b'])
})

/** A disk that cannot be written: a folder stands where the file should. */
function blocked(t: Test): { folder: string; unblock: () => void } {
  const folder = t.testdir()
  const path = join(folder, 'audit.ndjson')
  mkdirSync(path)
  return { folder, unblock: () => rmdirSync(path) }
}

t.test('what cannot be written is counted and told once a minute, and stops nothing', async (t) => {
  const { folder, unblock } = blocked(t)
  const { log, problems, clock } = open(folder)
  for (let i = 0; i < 3; i++) {
    log.append(entry())
    await log.flush()
  }
  t.equal(log.lostEntries, 3)
  t.match(problems, [{ lostEntries: 1, cause: { code: 'EISDIR' } }])
  clock.nowMs = 60_000
  log.append(entry())
  await log.flush()
  t.match(problems, [{}, { lostEntries: 3 }])
  unblock()
  log.append(entry({ subject: 'kept' }))
  t.strictSame(await subjects(log), ['kept'])
  t.equal(log.lostEntries, 4)
})

t.test(
  'a full disk loses entries and nothing else',
  { skip: process.platform !== 'linux' && 'there is no /dev/full' },
  async (t) => {
    const folder = t.testdir()
    symlinkSync('/dev/full', join(folder, 'audit.ndjson'))
    const { log, problems } = open(folder)
    log.append(entry())
    await log.flush()
    t.match(problems, [{ lostEntries: 1, cause: { code: 'ENOSPC' } }])
  },
)

t.test('what comes faster than it can be written is lost beyond a limit', async (t) => {
  const folder = t.testdir()
  const bytes = Buffer.byteLength(`${JSON.stringify(entry({ subject: 'a' }))}\n`)
  const { log, problems } = open(folder, { maxBufferBytes: 2 * bytes })
  for (const subject of ['a', 'b', 'c']) log.append(entry({ subject }))
  t.strictSame(await subjects(log), ['a', 'b'])
  t.equal(log.lostEntries, 1)
  t.equal(problems.length, 1)
  log.append(entry({ subject: 'd' }))
  t.strictSame(await subjects(log), ['a', 'b', 'd'])
})

t.test('a file that cannot be read is a fault of the reader alone', async (t) => {
  const { folder, unblock } = blocked(t)
  const { log } = open(folder)
  await t.rejects(log.newest(1), { code: 'data-unusable', message: /^audit\.ndjson in the data folder is no file/ })
  unblock()
  writeFileSync(join(folder, 'audit.ndjson'), '')
  chmodSync(folder, 0o700)
  log.append(entry({ subject: 'a' }))
  t.strictSame(await subjects(log), ['a'])
})
