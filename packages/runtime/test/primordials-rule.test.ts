import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import rules from './support/primordials-rule.ts'

const RULE = join(import.meta.dirname, 'support/primordials-rule.ts')
const OXLINT = join(import.meta.dirname, '../../../node_modules/.bin/oxlint')

/** Code within a function, and whether the rule reports it. */
const CASES: readonly (readonly [code: string, isReported: boolean])[] = [
  [`list.push(1)`, true],
  [`text.split(',')`, true],
  [`/a/.test(text)`, true],
  [`promise.then(list)`, true],
  [`call.apply(undefined, list)`, true],
  [`Object.keys(text)`, true],
  [`new Map()`, true],
  [`new Date()`, true],
  [`throw new TypeError('t')`, true],
  [`globalThis.a = 1`, true],
  [`text instanceof call`, true],
  [`for (const item of list) call(item)`, true],
  [`call(...list)`, true],
  [`const [a] = list; call(a)`, true],
  [`const a: string[] = []; call(a)`, true],
  [`WebAssembly.compile(text)`, true],
  [`call(list as Map<string, string>)`, false],
  [`const a: Promise<Map<string, Date>> | undefined = undefined; call(a)`, false],
  [`safe.get(text); this.#kept.add(text)`, false],
  [`row.set(text)`, false],
  [`call({ ...list }, [text], NaN, undefined)`, false],
  [`bridge.answer(text)`, false],
  [`this.#push(text)`, false],
]

t.test('the rule finds what may have been replaced, and nothing else', async (t) => {
  const files = Object.fromEntries(
    CASES.map(([code], index) => [
      `case-${index}.ts`,
      `import { SafeMap, SafeSet } from './primordials.ts'
type Row = SafeMap<string, string>
const safe = new SafeMap<string, string>()
export class Given {
  readonly #kept = new SafeSet<unknown>()
  #push(text: string) { return text }
  run(list: any, text: any, call: any, promise: any, row: Row, bridge: any, ...rest: unknown[]) { ${code} }
}
`,
    ]),
  )
  const config = { jsPlugins: [RULE], plugins: [], categories: { correctness: 'off' }, rules: { 'guest/primordials': 'error' } }
  // Not in tap's folder for fixtures, which oxlint passes over.
  const folder = mkdtempSync(join(tmpdir(), 'carpool-rule-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, '.oxlintrc.json'), JSON.stringify(config))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  // Not with spawn's env, into which tap puts its hooks.
  const path = `PATH=${process.env['PATH'] ?? ''}`
  const args = ['-i', path, OXLINT, '-c', '.oxlintrc.json', '-f', 'unix', '.']
  const { stdout } = spawnSync('env', args, { cwd: folder, encoding: 'utf8' })
  for (const [index, [code, isReported]] of CASES.entries()) {
    t.equal(
      stdout.includes(`case-${index}.ts:`),
      isReported,
      `${code}\n${stdout
        .split('\n')
        .filter((line) => line.includes(`case-${index}.ts:`))
        .join('\n')}`,
    )
  }
})

t.test('the rule is that of the guest', (t) => {
  t.same([rules.meta.name, Object.keys(rules.rules)], ['guest', ['primordials']])
  t.end()
})
