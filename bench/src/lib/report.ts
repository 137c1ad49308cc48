import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { environmentLines, type Environment } from './environment.ts'
import { repositoryPath } from './repository.ts'
import { verdictLine, type Verdict } from './verdict.ts'

export interface Report {
  /** Short name: results are saved under it. */
  readonly bench: string
  readonly title: string
  readonly environment: Environment
  /** Tables and notes, one block each. */
  readonly blocks: readonly string[]
  readonly verdicts: readonly Verdict[]
  /** All that was measured, for machines. */
  readonly results: unknown
}

export interface ReportOptions {
  readonly json: boolean
  readonly save: boolean
}

/** Prints a report on stdout, saves it if wanted, and sets the exit code: 1 if a demand was not met. */
export function publish(report: Report, { json, save }: ReportOptions): void {
  const { bench, title, environment, blocks, verdicts, results } = report
  const document = `${JSON.stringify({ bench, environment, verdicts, results }, null, 2)}\n`
  const text = [
    `# ${title}`,
    environmentLines(environment).join('\n'),
    ...blocks,
    ...(verdicts.length > 0 ? [verdicts.map(verdictLine).join('\n')] : []),
  ].join('\n\n')
  process.stdout.write(json ? document : `${text}\n`)
  if (save) {
    const file = repositoryPath(`bench/results/${bench}.json`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, document)
    progress(`saved bench/results/${bench}.json`)
  }
  if (verdicts.some(({ kind, isMet }) => kind === 'demand' && !isMet)) process.exitCode = 1
}

/** Says on stderr what is going on. */
export function progress(text: string): void {
  process.stderr.write(`${text}\n`)
}
