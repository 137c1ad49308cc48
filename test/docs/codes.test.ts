/** docs/errors.md lists every error and every outcome, and no others. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ERRORS, OUTCOMES } from '@carpool/core'
import t from 'tap'
import { ROOT } from '../support/command.ts'

const text = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')

/** The rows of the table under a heading, as cells. */
function rowsUnder(heading: string): string[][] {
  const section = text.split(`\n## ${heading}\n`)[1]?.split('\n#')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

t.test('errors', async (t) => {
  const listed = rowsUnder('Errors').map(([code, status, title, fault, retryable]) => [code, status, title, fault, retryable])
  const defined = Object.entries(ERRORS).map(([code, { status, title, fault, retryable }]) => [
    `\`${code}\``,
    String(status),
    title,
    fault,
    retryable ? 'yes' : '',
  ])
  t.strictSame(listed, defined)
})

t.test('outcomes', async (t) => {
  const listed = rowsUnder('Outcomes').map(([code, status, title]) => [code, status, title])
  const defined = Object.entries(OUTCOMES).map(([code, { status, title }]) => [
    `\`${code}\``,
    status === null ? 'its own' : String(status),
    title,
  ])
  t.strictSame(listed, defined)
})
