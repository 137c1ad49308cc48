import { build, type Metafile, type Plugin, transform } from 'esbuild'
import { basename, extname, join } from 'node:path'
import { joinScripts } from './bridge.ts'
import { INTRINSICS, INTRINSICS_NUMBER, LIBRARIES, NATIVES_NAME } from './libraries.ts'

const GUEST = join(import.meta.dirname, 'guest')
const EXTENSION = extname(import.meta.filename)
const LIBRARY = 'library:'

interface Chunk {
  readonly name: string
  readonly text: string
  readonly meta: Metafile['outputs'][string]
}

/**
 * Bundles the world that a function runs in into scripts for a bare context, as one text ({@link joinScripts}).
 *
 * The first is the core. Its completion value is a function `boot(names, ...functions)`: `names` are the method names of the
 * GuestBridge between commas, `functions` the callbacks in that order. It returns the {@link GuestEntries}. The others are the
 * {@link LIBRARIES}, in their order, and behind them what several of these share. The completion value of each is a function
 * `(require) => exports`, where `require(0)` is what the core shares, and `require(n)` the exports of the n-th library. One that
 * needs native functions takes them behind that: `(require, natives) => exports`.
 *
 * Names stay as they are, for stack traces and `constructor.name`; white space goes.
 */
export async function bundleRuntime(): Promise<string> {
  const result = await build({
    entryPoints: [
      { in: join(GUEST, `main${EXTENSION}`), out: 'main' },
      ...LIBRARIES.map((name) => ({ in: LIBRARY + name, out: name })),
    ],
    // Nothing from the folder that the server was started in may get into it.
    absWorkingDir: import.meta.dirname,
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    outdir: '.',
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'esnext',
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'inline',
    // A script of one-byte characters takes half the memory.
    charset: 'ascii',
    logLevel: 'silent',
    // Imports of types only are gone by then, so nothing but the guest and its libraries is in the bundle.
    tsconfigRaw: {},
    plugins: [libraryEntries],
  })
  const { outputs } = result.metafile
  const chunks = result.outputFiles.map(({ path, text }): Chunk => {
    const name = basename(path)
    return { name, text, meta: outputs[name]! }
  })
  const find = (name: string): Chunk => chunks.find((chunk) => chunk.name === name)!
  // All that the core consists of is in one chunk, as each library needs all of it.
  const core = find(basename(find('main.js').meta.imports[0]!.path))
  const libraries = LIBRARIES.map((name) => find(`${name}.js`))
  const shared = chunks.filter((chunk) => chunk.name !== 'main.js' && chunk !== core && !libraries.includes(chunk))
  const scripts = [core, ...libraries, ...shared]
  const numberOf = (path: string): number => scripts.findIndex(({ name }) => name === basename(path))
  return joinScripts([coreScript(core), ...(await Promise.all(scripts.slice(1).map((chunk) => libraryScript(chunk, numberOf))))])
}

/** A library reaches all of the core, so that this becomes one chunk and nothing of it is in the library. */
const libraryEntries: Plugin = {
  name: 'library',
  setup(bundle) {
    bundle.onResolve({ filter: /^library:/ }, ({ path }) => ({ path: path.slice(LIBRARY.length), namespace: 'library' }))
    bundle.onLoad({ filter: /^/, namespace: 'library' }, ({ path }) => ({
      contents: `import './main${EXTENSION}'; export * from './libraries/${path}${EXTENSION}'`,
      resolveDir: GUEST,
    }))
  },
}

const EXPORTS = /\bexport\{([^{}]*)\};?\s*$/

/** What the core exports to libraries is put into an object when the first of them asks, so that it costs nothing before. */
function coreScript({ text }: Chunk): string {
  const exported = EXPORTS.exec(text)
  if (exported === null) throw new Error('The core of the runtime exports nothing.')
  const names = exported[1]!.split(',').map((name) => name.split(' as '))
  const getters = names.map(([inside, outside = inside]) => `get ${outside}(){return ${inside}}`).join(',')
  // Strict mode keeps frames and callers of the runtime from user code.
  const body = `${text.slice(0, exported.index)}\nshareCore(()=>({__proto__:null,${getters}}));return boot(...given)`
  return `(function(){'use strict';const given=arguments;${body}})`
}

async function libraryScript({ name, text }: Chunk, numberOf: (path: string) => number): Promise<string> {
  const { code } = await transform(text, {
    format: 'cjs',
    target: 'esnext',
    minifyWhitespace: true,
    charset: 'ascii',
    logLevel: 'silent',
  })
  const numbered = code.replaceAll(/\brequire\("\.\/([\w-]+\.js)"\)/g, (_, path: string) => `require(${numberOf(path)})`)
  if (/\brequire\("/.test(numbered)) throw new Error(`The library ${name} requires what is no part of the runtime.`)
  const own = `const{${INTRINSICS.join(',')}}=require(${INTRINSICS_NUMBER})`
  const lean = withLeanExports(name, numbered)
  const body = `const module={exports:{}};let exports=module.exports;${lean}\nreturn module.exports`
  // The addon gives native functions to a script that takes them.
  const parameters = new RegExp(`\\b${NATIVES_NAME}\\b`).test(lean) ? `require,${NATIVES_NAME}` : 'require'
  return `(function(${parameters}){'use strict';${own};return(function(){${body}})()})`
}

const PRELUDE = /^var __defProp=.*?__export\(\w+,\{(.*?)\}\);.*?module\.exports=__toCommonJS\((\w+)\);/s
const GETTER = /^([\w$]+):\(\)=>(.+)$/

/** What esbuild puts in front of exports is made for programs that ask for more than their names. */
function withLeanExports(script: string, code: string): string {
  const prelude = PRELUDE.exec(code)
  if (prelude === null) throw new Error(`The exports of the library ${script} are not written as esbuild does it.`)
  const [found, list, name] = prelude as unknown as [string, string, string]
  const getters = list.split(',').map((one) => {
    if (!GETTER.test(one)) throw new Error(`An export of the library ${script} is not written as esbuild does it: ${one}`)
    return one.replace(GETTER, 'get $1(){return $2}')
  })
  return `const ${name}={__proto__:null,${getters.join(',')}};module.exports=${name};${code.slice(found.length)}`
}
