import { readFile } from 'node:fs/promises'
import type { Metafile, Plugin } from 'esbuild'
import { labelPath } from './label-path.ts'

/** Modules in base64 by their labels. */
export type WebAssemblyFiles = ReadonlyMap<string, string>

/** What a bundle's modules find them in; see assemble-script.ts. */
export const MODULES = 'carpoolModules_'

const PREAMBLE = Buffer.from('\0asm\x01\0\0\0', 'latin1')

/**
 * Makes of a `.wasm` file a module that gives it compiled. The bytes stand elsewhere: the runtime compiles them before any of
 * the modules.
 */
export function webAssemblyFiles(folder: string, found: Map<string, string>): Plugin {
  return {
    name: 'web-assembly-files',
    setup(build) {
      build.onLoad({ filter: /\.wasm$/, namespace: 'file' }, async ({ path }) => {
        const bytes = await readFile(path)
        const label = labelPath(path, folder)
        if (!bytes.subarray(0, PREAMBLE.length).equals(PREAMBLE)) {
          return { errors: [{ text: `${label} is no WebAssembly module of version 1` }] }
        }
        found.set(label, bytes.toString('base64'))
        return { contents: `module.exports = ${MODULES}[${JSON.stringify(label)}]`, loader: 'js' }
      })
    },
  }
}

/** The file of a module as the bundler names it, which keeps what an import has behind the name: `./a.wasm?module`. */
export function fileOfModule(path: string): string {
  return path.replace(/(\.wasm)\?.*$/s, '$1')
}

/** Those that are in the output. */
export function bundledFiles(found: WebAssemblyFiles, { outputs }: Metafile, folder: string): WebAssemblyFiles {
  const used = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [labelPath(fileOfModule(path), folder)] : [],
    ),
  )
  return new Map([...found].filter(([label]) => used.includes(label)).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
