/** Measures what the texts claim, says what holds, and writes it into them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { progress } from '../lib/report.ts'
import { repositoryPath } from '../lib/repository.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { BENCH_NAMES, BENCHES, type BenchName } from './benches.ts'
import type { BenchDocument, Claim, Reading } from './claim.ts'
import { CLAIMS } from './claims.ts'
import { CODE_CLAIMS } from './code-claims.ts'
import { compareClaim } from './compare.ts'
import { COMPARISON_COLUMNS } from './comparison-columns.ts'
import { runBench } from './measure.ts'
import { provenanceOf, readStored, writeStored } from './stored.ts'
import { checkTexts, writeTexts } from './texts.ts'

const HELP = `npm run claims -- [options]

Measures every figure that the texts state, one bench after the other, says which hold, and writes them into the texts.
It takes about ${Math.round(BENCH_NAMES.reduce((sum, name) => sum + BENCHES[name].minutes, 0) / 10) * 10} minutes and needs a machine with nothing else to do.

  --only <claim,...>  measure these claims, or all of these benches
  --quick             measure in short form what needs no quiet machine, and compare; writes nothing, exit code 1 if a claim is broken
  --short             the short form for all that is measured; writes nothing either
  --stored            read bench/results/*.json rather than measure
  --check             measure nothing: say whether the texts match what is stored and what the code says
  --list              name all claims, with what they need and how long each bench takes
  --help              print this and stop
`

interface Measured {
  readonly claim: Claim
  readonly reading: Reading
  readonly document: BenchDocument
}

const { values: given } = readArguments()
if (given.help) process.stdout.write(HELP)
else if (given.list) list()
else if (given.check) check()
else await measure()

function readArguments(): {
  values: Record<'quick' | 'short' | 'stored' | 'check' | 'list' | 'help', boolean | undefined> & { only: string | undefined }
} {
  const flag = { type: 'boolean' as const }
  try {
    const { values } = parseArgs({
      options: { only: { type: 'string' }, quick: flag, short: flag, stored: flag, check: flag, list: flag, help: flag },
    })
    const { only, quick, short: isShort, stored, check: isCheck, list: isList, help } = values
    return { values: { only, quick, short: isShort, stored, check: isCheck, list: isList, help } }
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function refuse(message: string): never {
  progress(message)
  process.exit(2)
}

function list(): void {
  const columns: ReadonlyArray<Column<Claim>> = [
    { title: 'claim', align: 'left', text: ({ name }) => name },
    { title: 'bench', align: 'left', text: ({ bench, part }) => (part === undefined ? bench : `${bench}, ${part}`) },
    { title: 'minutes', text: ({ bench }) => String(BENCHES[bench].minutes) },
    { title: 'in short', text: ({ bench }) => String(BENCHES[bench].quickMinutes) },
    { title: '--quick', align: 'left', text: ({ quick }) => (quick === undefined ? '' : 'yes') },
    { title: 'needs', align: 'left', text: ({ bench }) => BENCHES[bench].needs },
  ]
  process.stdout.write(
    `${renderTable(columns, CLAIMS)}\n\nBy the code, without a bench: ${CODE_CLAIMS.map(({ name }) => name).join(', ')}\n`,
  )
}

function check(): void {
  const problems = checkTexts(readStored())
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.stdout.write(
    problems.length === 0 ? 'The texts match.\n' : `${problems.length} places do not match; npm run claims writes them.\n`,
  )
  if (problems.length > 0) process.exitCode = 1
}

/** The claims that the command line asks for. */
function wantedClaims(): Claim[] {
  const names = given.only?.split(',')
  const unknown = names?.filter((name) => !CLAIMS.some((claim) => claim.name === name || claim.bench === name)) ?? []
  if (unknown.length > 0) refuse(`There is no claim or bench named ${unknown.join(', ')}; see --list.`)
  return CLAIMS.filter(({ name, bench, quick }) => {
    if (given.quick && quick === undefined) return false
    return names === undefined || names.includes(name) || names.includes(bench)
  })
}

async function measure(): Promise<void> {
  const wanted = wantedClaims()
  const isQuick = given.quick === true || given.short === true
  const documents = new Map<BenchName, BenchDocument>()
  const failures: string[] = []
  const benches = BENCH_NAMES.filter((name) => wanted.some(({ bench }) => bench === name))
  for (const [index, name] of benches.entries()) {
    progress(
      `\n${name}: ${index + 1} of ${benches.length}, about ${isQuick ? BENCHES[name].quickMinutes : BENCHES[name].minutes} min`,
    )
    try {
      const parts = partsOf(wanted, name)
      documents.set(name, given.stored ? readResults(name) : await runBench({ name, isQuick, parts }))
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message}`)
    }
  }
  const stored = readStored()
  const measured = wanted.flatMap((claim) => read(claim, documents, failures))
  const comparisons = measured.flatMap(({ claim, reading, document }) =>
    compareClaim(claim, reading, document, stored[claim.name], given.quick === true),
  )
  process.stdout.write(`${renderTable(COMPARISON_COLUMNS, comparisons)}\n`)
  for (const failure of failures) process.stdout.write(`NOT MEASURED  ${failure}\n`)
  const broken = comparisons.filter(({ judgement }) => judgement === 'BROKEN').length
  const worse = comparisons.filter(({ judgement }) => judgement === 'WORSE').length
  process.stdout.write(`${measured.length} claims measured: ${broken} broken, ${worse} worse, ${failures.length} not measured.\n`)
  if (broken > 0 || failures.length > 0) process.exitCode = 1
  if (given.quick) check()
  if (isQuick) return
  const news = measured.map(({ claim, reading, document }) => {
    const figures = Object.fromEntries(
      Object.entries(reading.figures).map(([name, { value }]) => [name, Number(value.toPrecision(6))]),
    )
    return [claim.name, { text: reading.text, figures, ...provenanceOf(document.environment) }] as const
  })
  const kept = { ...stored, ...Object.fromEntries(news) }
  writeStored(kept)
  // Only now: what is written before a bench starts would make it say that the commit was changed.
  if (!given.stored)
    for (const [name, document] of documents) if (partsOf(wanted, name) === undefined) writeResults(name, document)
  for (const file of writeTexts(kept)) process.stdout.write(`written: ${file}\n`)
}

/** The parts of a bench that the claims need; undefined if all claims of the bench are wanted, so that the results are whole. */
function partsOf(wanted: readonly Claim[], name: BenchName): string[] | undefined {
  const own = CLAIMS.filter(({ bench }) => bench === name)
  if (own.every((claim) => wanted.includes(claim))) return undefined
  return [...new Set(wanted.filter(({ bench }) => bench === name).flatMap(({ part }) => part ?? []))]
}

/** A reading that fails is told, and the others still count. */
function read(claim: Claim, documents: ReadonlyMap<BenchName, BenchDocument>, failures: string[]): Measured[] {
  const document = documents.get(claim.bench)
  if (document === undefined) return []
  try {
    return [{ claim, document, reading: claim.read(document) }]
  } catch (error) {
    failures.push(`${claim.name}: ${(error as Error).message}`)
    return []
  }
}

function readResults(name: BenchName): BenchDocument {
  return JSON.parse(readFileSync(repositoryPath(`bench/results/${name}.json`), 'utf8')) as BenchDocument
}

function writeResults(name: BenchName, document: BenchDocument): void {
  mkdirSync(repositoryPath('bench/results'), { recursive: true })
  writeFileSync(repositoryPath(`bench/results/${name}.json`), `${JSON.stringify(document, null, 2)}\n`)
}
