import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { inNode } from '../compat/in-node.ts'
import { ROOT } from '../support/command.ts'
import { IS_WHOLE } from '../support/form.ts'
import { startServer } from '../support/server.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { startUpstream } from './upstream.ts'
import { WAITING } from './waiting.ts'

/**
 * All packages, installed by their lock file (`npm run test:packages`); in the short form those that the repository has anyway.
 */
const GROUPS = IS_WHOLE ? ['common', 'data', 'text', 'web'] : ['common']

/** Runs the cases of a group, in Node.js or in a function, and says what comes of each. */
const INDEX = (group: string): string => `
import * as uses from './${group}.mjs'
import { asJson, runCases } from './run-cases.mjs'
export const run = async (upstream) => asJson(await runCases(uses.cases ?? uses.casesOf(upstream)))
export default async (request) => new Response(await run(new URL(request.url).searchParams.get('upstream')))
`

// They are installed first.
t.setTimeout(600_000)

t.test('packages do in a function what they do in Node.js', { timeout: 600_000 }, async (t) => {
  const home = IS_WHOLE ? installPackages() : t.testdir()
  const folder = join(home, 'functions')
  mkdirSync(folder, { recursive: true })
  cpSync(join(import.meta.dirname, 'uses'), folder, { recursive: true })
  cpSync(join(import.meta.dirname, '../compat/run-cases.mjs'), join(folder, 'run-cases.mjs'))
  const upstream = await startUpstream(t)
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-bundle-bytes', '33554432'])
  const results: Array<readonly [name: string, isSame: boolean]> = []
  for (const group of GROUPS) {
    await t.test(group, async (t) => {
      const entry = join(folder, `index-${group}.mjs`)
      writeFileSync(entry, INDEX(group))
      const expected = JSON.parse(await inNode(entry, upstream)) as Record<string, unknown>
      await server.json('deploy', entry, '--name', group, '--memory-mb', '256', '--timeout-ms', '60000', '--cpu-ms', '30000')
      const response = await server.get(`/${group}/?upstream=${encodeURIComponent(upstream)}`)
      const text = await response.text()
      t.equal(response.status, 200, text)
      const found = JSON.parse(text) as Record<string, unknown>
      for (const [name, value] of Object.entries(expected)) {
        const waitsFor = WAITING[name]
        results.push([name, isDeepStrictEqual(found[name], value)])
        t.same(found[name], value, name, waitsFor === undefined ? {} : { todo: waitsFor })
      }
    })
  }
  if (IS_WHOLE && process.env['CARPOOL_WRITE_COMPATIBILITY'] === '1') writeTable(home, results)
})

/** Writes the table of docs/compatibility.md. */
function writeTable(home: string, results: ReadonlyArray<readonly [name: string, isSame: boolean]>): void {
  const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const rows = results
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, isSame]) => {
      const version = dependencies[name] ?? dependencies[name.replace(/\/server$/, '')] ?? ''
      return `| ${name} | ${version} | ${isSame ? 'as in Node.js' : `waits for ${WAITING[name] ?? '?'}`} |`
    })
  const same = results.filter(([, isSame]) => isSame).length
  const table = [
    `${same} of ${results.length} do what they do in Node.js ${process.version}.`,
    '',
    '| package | version | |',
    '|---|---|---|',
    ...rows,
  ]
  const file = join(ROOT, 'docs/compatibility.md')
  const text = readFileSync(file, 'utf8')
  const marks = /(<!-- packages -->\n)[\s\S]*(<!-- \/packages -->)/
  writeFileSync(
    file,
    text.replace(marks, (_, open: string, close: string) => `${open}\n${table.join('\n')}\n\n${close}`),
  )
}
