/**
 * Each layer of the sandbox by itself, with all others off, against all that a host with a hole could try; and all of them
 * together. What stops what is the table in docs/sandbox.md; with CARPOOL_WRITE_TABLES in the environment it is written anew.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LAYER_NAMES, type LayerName } from '../../packages/sandbox/src/index.ts'
import { BUBBLEWRAP_LAYERS } from '../../packages/sandbox/src/layers.ts'
import { ROOT } from '../support/command.ts'
import { runClean } from '../support/run-clean.ts'
import type { Attack } from './support/attack.ts'

const DOCUMENT = join(ROOT, 'docs/sandbox.md')
const TABLE = /(?<=\| attempt \| layers that stop it, each by itself \|\n\|---\|---\|\n)(?:\|.*\|\n)+/

const { stdout, stderr } = await runClean([join(import.meta.dirname, 'support/attack.ts')])
t.equal(stderr, '')
const { missing, attempts, done } = JSON.parse(stdout) as Attack
const present = LAYER_NAMES.filter((name) => missing[name] === undefined)
/** A user who is not root has no capabilities to lose, so the layer that takes them shows nothing of it. */
const compared = present.filter((name) => process.getuid?.() === 0 || name !== 'no-new-privileges')
const stoppedBy = attempts.map((attempt) => [attempt, compared.filter((name) => !done[name]!.includes(attempt))] as const)

t.test('without any layer all of it can be done, or the rest would show nothing', async (t) => {
  t.strictSame(done[''], attempts)
})

const reasons = LAYER_NAMES.flatMap((name) => (missing[name] === undefined ? [] : [`no ${name}: ${missing[name]}`]))
const lacks = reasons.length > 0 && `${reasons.join(' ')} carpool doctor says what would bring each.`

t.test('with all layers none of it can be done', { skip: lacks }, async (t) => {
  t.strictSame(done[present.join()], [])
})

t.test('bubblewrap works where all tests are to run', { skip: process.env['CI'] !== 'true' && lacks }, async (t) => {
  for (const name of BUBBLEWRAP_LAYERS) t.equal(missing[name], undefined, name)
})

t.test('docs/sandbox.md says what each layer stops by itself', async (t) => {
  const text = readFileSync(DOCUMENT, 'utf8')
  if (process.env['CARPOOL_WRITE_TABLES'] !== undefined) {
    const rows = stoppedBy.map(([attempt, layers]) => `| ${attempt} | ${layers.join(', ')} |\n`)
    writeFileSync(DOCUMENT, text.replace(TABLE, rows.join('')))
  }
  const documented = (TABLE.exec(text)?.[0] ?? '').trimEnd().split('\n').map(cellsOf)
  for (const [attempt, layers] of stoppedBy) {
    const row = documented.find(([name]) => name === attempt)
    t.strictSame(
      row?.[1].filter((name) => compared.includes(name)),
      layers,
      attempt,
    )
  }
})

function cellsOf(row: string): readonly [attempt: string, layers: readonly LayerName[]] {
  const [, attempt = '', layers = ''] = row.split('|').map((cell) => cell.trim())
  return [attempt, layers.split(', ').filter(Boolean) as LayerName[]]
}
