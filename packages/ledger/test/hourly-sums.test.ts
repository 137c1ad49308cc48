import type { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { BatchWriter } from '../src/batch-writer.ts'
import { openForWriting } from '../src/database.ts'
import { RevisionDictionary } from '../src/revision-dictionary.ts'
import { RingFiller } from '../src/ring-filler.ts'
import { createRingMemory, ringOf } from '../src/ring.ts'
import { takeStock } from '../src/stock.ts'
import { readUsage } from '../src/usage-query.ts'
import { ask, fileOf, record } from './fixtures/records.ts'

function countOf(database: DatabaseSync): number {
  return readUsage(database, { by: 'owner' }).reduce((sum, { invocations }) => sum + invocations, 0)
}

t.test('sums that are stored piece by piece count no row twice, at no moment and after no crash', async (t) => {
  const FUNCTIONS = 300
  for (let steps = 0; steps <= 6; steps += 1) {
    const folder = t.testdir()
    const { database } = openForWriting(fileOf(folder))
    const memory = createRingMemory()
    const writer = new BatchWriter(database, ringOf(memory))
    const dictionary = new RevisionDictionary([], (revision) => writer.addRevision(revision))
    const filler = new RingFiller(memory, 1, dictionary)
    let written = 0
    const write = (count: number): void => {
      for (let i = 0; i < count; i += 1) filler.put(record({ functionName: `f${i}`, revision: `r${i}` }), 0)
      writer.write(written, count)
      written += count
    }
    write(FUNCTIONS)
    for (let step = 0; step < steps; step += 1) {
      writer.storeSums()
      t.equal(countOf(database), written, `after step ${step} of storing`)
      // Of revisions whose sums were stored in this round, and of others.
      write(100)
      t.equal(countOf(database), written)
    }
    database.close()

    const next = openForWriting(fileOf(folder)).database
    t.equal(takeStock(next).lastSequence, written)
    t.equal(countOf(next), written)
    t.equal(takeStock(next).ran.length, FUNCTIONS)
    t.equal(countOf(next), written)
    next.close()
    t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], written)
  }
})
