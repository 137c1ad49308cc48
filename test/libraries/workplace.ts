/** Lays the sources of a library out as a function, and as a program for Node.js. */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Library } from './libraries.ts'

const GUEST = join(import.meta.dirname, 'guest')

/** What tests import in place of packages that need a machine. */
const IN_PLACE_OF: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'vitest': { '.': 'vitest.mjs' },
  'get-port-please': { '.': 'random-port.mjs' },
  'msw': { '.': 'msw.mjs', './node': 'msw-server.mjs' },
}

export interface Workplace {
  /** The function: it runs the tests of the file that a call names. */
  readonly entry: string
  /** The same as one module for Node.js, whose `run` gives what comes of each file. */
  readonly program: string
  /** The files with tests, by their paths in the library. */
  readonly tests: readonly string[]
}

/** @param home a folder with the packages that the tests need in `node_modules` */
export async function layOut({ name, isTest, leftOut }: Library, sources: string, home: string): Promise<Workplace> {
  const folder = join(home, 'functions', name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  cpSync(join(sources, name), folder, { recursive: true })
  const manifest = join(folder, 'package.json')
  // What a library imports by its own name is its source, as nothing of it is built; and what is added here has effects.
  const text = readFileSync(manifest, 'utf8').replaceAll(/"\.\/dist\/(.*)\.mjs"/g, '"./src/$1.ts"')
  writeFileSync(manifest, text.replace('"sideEffects": false', '"sideEffects": true'))
  for (const [name, files] of Object.entries(IN_PLACE_OF)) {
    const place = join(folder, 'node_modules', name)
    mkdirSync(place, { recursive: true })
    const exports = Object.fromEntries(Object.entries(files).map(([path, file]) => [path, `./${file}`]))
    writeFileSync(join(place, 'package.json'), JSON.stringify({ name, type: 'module', exports }))
    for (const file of Object.values(files)) cpSync(join(GUEST, file), join(place, file))
  }
  cpSync(join(GUEST, 'own-servers.mjs'), join(folder, 'own-servers.mjs'))
  const tests = globSync('**/*', { cwd: folder, exclude: ['node_modules'] })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => isTest.test(file) && leftOut[file] === undefined)
    .toSorted()
  const entry = join(folder, 'carpool-tests.mjs')
  writeFileSync(entry, indexOf(tests))
  const program = join(folder, 'carpool-tests-in-node.mjs')
  await build({
    absWorkingDir: folder,
    entryPoints: [entry],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    define: { 'process.env.NODE_ENV': '"production"' },
    jsx: 'automatic',
    // Packages of CommonJS require modules of Node.js.
    banner: { js: `import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);` },
    logLevel: 'error',
  })
  return { entry, program, tests }
}

function indexOf(tests: readonly string[]): string {
  const imports = tests.map((file) => `${JSON.stringify(file)}: () => import(${JSON.stringify(`./${file}`)})`)
  return `import './own-servers.mjs'
import * as vitest from 'vitest'
Object.assign(globalThis, vitest)
process.on('unhandledRejection', () => {}).on('uncaughtException', () => {})
const files = { ${imports.join(', ')} }
const runOne = (file) => vitest.runFile(file, files[file])
export async function run() {
  // The timers of the runner do not keep Node.js running.
  setInterval(() => {}, 60_000)
  const results = {}
  for (const file of Object.keys(files)) results[file] = await runOne(file)
  return JSON.stringify(results)
}
export default async (request) => Response.json(await runOne(new URL(request.url).searchParams.get('file')))
`
}
