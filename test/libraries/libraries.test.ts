/**
 * The own tests of libraries, in Node.js and in functions: what passes there passes here, but for what expectations.json names
 * with a reason. `.ci/libraries` gets their sources; CARPOOL_LIBRARIES names the folder with them.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inNode } from '../compat/in-node.ts'
import { ROOT } from '../support/command.ts'
import { startServer } from '../support/server.ts'
import { installPackages } from '../../bench/src/lib/installed-packages.ts'
import { LIBRARIES } from './libraries.ts'
import { layOut } from './workplace.ts'

/** By the name of a test: that it passed, or why not. */
type Results = Readonly<Record<string, string | true>>
/** By library, file and name of a test, or the beginning of names with a `*`: why it fails in a function. */
type Expectations = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>

interface Row {
  readonly library: string
  readonly version: string
  readonly files: number
  readonly inNode: number
  readonly expected: number
  readonly passes: number
}

const sources = process.env['CARPOOL_LIBRARIES'] ?? ''
const expectations = JSON.parse(readFileSync(join(import.meta.dirname, 'expectations.json'), 'utf8')) as Expectations
const skip = !existsSync(sources) && 'CARPOOL_LIBRARIES names no folder with the libraries: .ci/libraries makes one'

// Without it the file has two minutes, which Hono's tests alone take on a slow machine.
t.setTimeout(900_000)
t.test('libraries pass in a function what they pass in Node.js of their own tests', { skip, timeout: 900_000 }, async (t) => {
  const home = installPackages('test/libraries')
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-bundle-bytes', '33554432'])
  const rows: Row[] = []
  for (const library of LIBRARIES) {
    await t.test(library.name, async (t) => {
      const { entry, program, tests } = await layOut(library, sources, home)
      const expected = JSON.parse(await inNode(program)) as Record<string, Results>
      await server.json(
        'deploy',
        entry,
        '--name',
        library.name,
        '--memory-mb',
        '512',
        '--timeout-ms',
        '60000',
        '--cpu-ms',
        '30000',
      )
      const row = {
        library: library.name,
        version: versionOf(library.name),
        files: tests.length,
        inNode: 0,
        expected: 0,
        passes: 0,
      }
      for (const file of tests) {
        const response = await server.get(`/${library.name}/?file=${encodeURIComponent(file)}`)
        const text = await response.text()
        const found = response.status === 200 ? (JSON.parse(text) as Results) : {}
        const reasons = expectations[library.name]?.[file] ?? {}
        const passed = Object.entries(expected[file] ?? {}).filter(([, outcome]) => outcome === true)
        const missing = passed.map(([name]) => name).filter((name) => found[name] !== true)
        const known = missing.filter((name) => reasonOf(reasons, name) !== undefined)
        row.inNode += passed.length
        row.expected += known.length
        row.passes += passed.length - missing.length
        if (response.status !== 200) t.fail(`${file}: ${text}`)
        const unknown = missing.filter((name) => !known.includes(name)).map((name) => [name, found[name]])
        t.same(unknown, [], file)
        const idle = Object.keys(reasons).filter((pattern) => !known.some((name) => isNamed(pattern, name)))
        t.same(idle, [], `${file}: expectations that nothing needs`)
      }
      t.comment(JSON.stringify(row))
      rows.push(row)
    })
  }
  if (process.env['CARPOOL_WRITE_COMPATIBILITY'] === '1') writeTable(rows)
})

function isNamed(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

function reasonOf(reasons: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.entries(reasons).find(([pattern]) => isNamed(pattern, name))?.[1]
}

function versionOf(library: string): string {
  return (JSON.parse(readFileSync(join(sources, library, 'package.json'), 'utf8')) as { version: string }).version
}

/** Writes the table of docs/compatibility.md. */
function writeTable(rows: readonly Row[]): void {
  const lines = rows.map(({ library, version, files, inNode, passes }) => {
    return `| ${library} | ${version} | ${files} | ${inNode} | ${passes} | ${Math.floor((passes / inNode) * 1000) / 10} |`
  })
  const head = ['| library | version | files | Node.js passes | of which a function | % |', '|---|---|---:|---:|---:|---:|']
  const file = join(ROOT, 'docs/compatibility.md')
  const marks = /(<!-- libraries -->\n)[^]*(<!-- \/libraries -->)/
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace(
      marks,
      (_, open: string, close: string) => `${open}\n${[...head, ...lines].join('\n')}\n\n${close}`,
    ),
  )
}
