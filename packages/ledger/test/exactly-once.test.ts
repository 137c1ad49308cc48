import { copyFileSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { OUTCOMES, START_KINDS, USAGE_GROUPS, type BackgroundUsage, type InvocationRecord, type Outcome } from '@carpool/core'
import type { Ledger } from '../src/index.ts'
import { GROUPS, totalsOf, type Written } from './fixtures/oracle.ts'
import { fileOf, HOUR_MS, idsIn, open, record, START_MS } from './fixtures/records.ts'

const figure = fc.oneof(fc.nat({ max: 3_000 }), fc.nat({ max: 900_000_000 }))
const functionNumber = fc.nat({ max: 3 })
const atMs = fc.nat({ max: 5 * HOUR_MS }).map((ms) => START_MS + ms)

const written: fc.Arbitrary<Written> = fc
  .record({
    functionNumber,
    startedAtMs: atMs,
    start: fc.constantFrom(...START_KINDS),
    outcome: fc.constantFrom<InvocationRecord['outcome']>('refused', 'ok', ...(Object.keys(OUTCOMES) as Outcome[])),
    memoryMb: fc.constantFrom(8, 128, 256),
    figures: fc.record({
      queueUs: figure,
      wallUs: figure,
      bytesIn: figure,
      bytesOut: figure,
      cpuUs: figure,
      initUs: figure,
      initCpuUs: figure,
      memoryPeakKb: figure,
      egressBytesOut: figure,
      egressBytesIn: figure,
    }),
    instanceUs: figure,
  })
  .map(({ functionNumber, figures, instanceUs, ...rest }) => ({
    record: record({ ...rest, ...figures, ...namesOf(functionNumber) }),
    instanceUs,
  }))

const background: fc.Arbitrary<BackgroundUsage> = fc
  .record({ functionNumber, atMs, host: fc.nat({ max: 3 }), cpuUs: figure, egressBytesOut: figure, egressBytesIn: figure })
  .map(({ functionNumber, ...rest }) => ({ ...rest, ...namesOf(functionNumber) }))

function namesOf(number: number): { functionName: string; revision: string; owner: string } {
  return { functionName: `f${number}`, revision: `r${number}`, owner: `o${number % 2}` }
}

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

async function totalsMatch(ledger: Ledger, records: readonly Written[], usages: readonly BackgroundUsage[]): Promise<void> {
  for (const by of USAGE_GROUPS) t.strictSame(await ledger.usage({ by }), totalsOf(GROUPS[by], records, usages), `by ${by}`)
}

/** Opens a copy of the files as they are at this moment, as after the end of a process that was killed. */
async function lookAtCopy(folder: string, look: (ledger: Ledger) => Promise<void>): Promise<void> {
  const copy = mkdtempSync(join(folder, 'copy-'))
  for (const ending of ['', '-wal']) copyFileSync(`${fileOf(folder)}${ending}`, `${fileOf(copy)}${ending}`)
  const { ledger, problems } = await open(copy)
  await look(ledger)
  t.strictSame(problems, [])
  await ledger.close()
}

t.test('each record is there once and the totals are their sums, whatever happens between', async (t) => {
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      const folder = t.testdir({ [`run-${runs}`]: {} }) + `/run-${runs}`
      runs += 1
      const records: Written[] = []
      const usages: BackgroundUsage[] = []
      let writes: Promise<void>[] = []
      let { ledger } = await open(folder)
      for (const step of steps) {
        if (step.kind === 'write') {
          for (const usage of step.usages) ledger.writeBackground(usage)
          for (const { record, instanceUs } of step.records) writes.push(ledger.write(record, instanceUs))
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
          await ledger.write(marker.record, marker.instanceUs)
          if (step.kind === 'look') await totalsMatch(ledger, records, usages)
          else await lookAtCopy(folder, (copy) => totalsMatch(copy, records, usages))
        }
      }
      await Promise.all([...writes, ledger.close()])
      t.strictSame(
        idsIn(folder),
        records.map(({ record }) => record.id),
      )
      ;({ ledger } = await open(folder))
      await totalsMatch(ledger, records, usages)
      await ledger.close()
    }),
    { numRuns: 40 },
  )
})
