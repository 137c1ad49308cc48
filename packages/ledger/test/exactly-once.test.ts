import { copyFileSync, mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { USAGE_GROUPS, type BackgroundUsage, type UsageGroup, type UsageRow } from '@carpool/core'
import { runs } from '../../../test/support/form.ts'
import { openForWriting } from '../src/database.ts'
import { Importer } from '../src/importer.ts'
import { readUsage } from '../src/queries.ts'
import { background, GROUPS, namesOf, totalsOf, written, type Written } from './fixtures/oracle.ts'
import { fileOf, idsIn, journalIn, open, record, save } from './fixtures/records.ts'

type Step =
  | { readonly kind: 'write'; readonly records: readonly Written[]; readonly usages: readonly BackgroundUsage[] }
  | { readonly kind: 'wait' | 'thread dies' | 'restart' | 'look' | 'copy' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      records: fc.array(written, { maxLength: 30 }),
      usages: fc.array(background, { maxLength: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('wait' as const, 'thread dies', 'restart', 'look', 'copy') }) },
)

/** The threads of this process that have not ended. */
const threads = new Set<Worker>()
process.on('worker', (thread: Worker) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})

async function totalsMatch(
  usageBy: (by: UsageGroup) => UsageRow[] | Promise<UsageRow[]>,
  records: readonly Written[],
  usages: readonly BackgroundUsage[],
): Promise<void> {
  for (const by of USAGE_GROUPS) t.strictSame(await usageBy(by), totalsOf(GROUPS[by], records, usages), `by ${by}`)
}

/** Opens a copy of the files as they are at this moment, as after the end of a process that was killed. */
async function lookAtCopy(folder: string, look: (database: DatabaseSync) => Promise<void>): Promise<void> {
  const copy = mkdtempSync(join(folder, 'copy-'))
  // What goes from one file to the other meanwhile is in both rather than in none: the journal first, and the log after the file.
  const names = readdirSync(folder).filter((name) => /^ledger-journal-\d+$/.test(name))
  for (const name of [...names, 'ledger.sqlite', 'ledger.sqlite-wal']) copyIfThere(join(folder, name), join(copy, name))
  const { database } = openForWriting(fileOf(copy))
  new Importer(database, { folder: copy, afterSequence: 0, onProblem: (problem) => t.fail(problem) }).bringIn()
  await look(database)
  database.close()
}

function copyIfThere(from: string, to: string): void {
  try {
    copyFileSync(from, to)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
  }
}

t.test('each record is there once and the totals are their sums, whatever happens between', async (t) => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      const folder = t.testdir({ [`run-${count}`]: {} }) + `/run-${count}`
      count += 1
      const records: Written[] = []
      const usages: BackgroundUsage[] = []
      let writes: Promise<void>[] = []
      let { ledger } = await open(folder)
      for (const step of steps) {
        if (step.kind === 'write') {
          for (const usage of step.usages) ledger.writeBackground(usage)
          for (const { record, instanceUs } of step.records) writes.push(save(ledger, record, instanceUs))
          records.push(...step.records)
          usages.push(...step.usages)
          continue
        }
        if (step.kind === 'thread dies') {
          await Promise.all([...threads].map((thread) => thread.terminate()))
          continue
        }
        await Promise.all(writes)
        writes = []
        if (step.kind === 'restart') {
          await ledger.close()
          ;({ ledger } = await open(folder))
        }
        // Background usage that came after the last record is not waited for, but a record after it is.
        if (step.kind === 'look' || step.kind === 'copy') {
          const marker = { record: record(namesOf(0)), instanceUs: 1 }
          records.push(marker)
          await save(ledger, marker.record, marker.instanceUs)
          if (step.kind === 'look') await totalsMatch((by) => ledger.usage({ by }), records, usages)
          else await lookAtCopy(folder, (copy) => totalsMatch((by) => readUsage(copy, { by }), records, usages))
        }
      }
      await Promise.all([...writes, ledger.close()])
      t.strictSame(
        idsIn(folder),
        records.map(({ record }) => record.id),
      )
      t.strictSame(journalIn(folder), [])
      await lookAtCopy(folder, (copy) => totalsMatch((by) => readUsage(copy, { by }), records, usages))
    }),
    { numRuns: runs(40) },
  )
})
