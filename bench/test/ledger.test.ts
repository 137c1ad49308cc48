import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLedger } from '@carpool/ledger'
import fc from 'fast-check'
import t from 'tap'
import { recordAt, SPREAD_MS } from '../src/ledger/records.ts'
import { ledgerBytes, writeRecords } from '../src/ledger/writing.ts'

const COUNT = 1_000_000
const END_MS = 1_800_000_000_000

t.test('records are valid, spread over the time, and the same each time', async (t) => {
  fc.assert(
    fc.property(fc.nat(COUNT - 1), (index) => {
      const record = recordAt(index, COUNT, END_MS)
      const figures = Object.values(record).filter((value) => typeof value === 'number')
      return (
        /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/.test(record.id) &&
        figures.every((value) => Number.isSafeInteger(value) && value >= 0) &&
        record.wallUs >= record.queueUs + record.initUs + record.cpuUs &&
        record.startedAtMs >= END_MS - SPREAD_MS &&
        record.startedAtMs < END_MS &&
        (record.outcome === 'refused') === (record.error !== undefined) &&
        JSON.stringify(record) === JSON.stringify(recordAt(index, COUNT, END_MS))
      )
    }),
  )
  const ids = new Set(Array.from({ length: 20_000 }, (_, index) => recordAt(index, COUNT, END_MS).id))
  t.equal(ids.size, 20_000, 'no id twice')
})

t.test('every record is written once, and takes room', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'carpool-bench-test-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const ledger = await openLedger(dataDir, {
    retentionDays: 3650,
    now: () => END_MS,
    onProblem: ({ message }) => t.fail(message),
  })
  const { recordsPerSecond } = await writeRecords(ledger, 1500, 16, END_MS)
  const rows = await ledger.usage({ by: 'owner' })
  const cpuUs = rows.reduce((sum, row) => sum + row.cpuUs, 0)
  await ledger.close()
  t.ok(recordsPerSecond > 0)
  t.equal(
    rows.reduce((sum, { invocations, refused }) => sum + invocations + refused, 0),
    1500,
  )
  t.equal(
    cpuUs,
    Array.from({ length: 1500 }, (_, index) => recordAt(index, 1500, END_MS).cpuUs).reduce((sum, us) => sum + us, 0),
  )
  t.ok((await ledgerBytes(dataDir)) > 1500 * 20)
})
