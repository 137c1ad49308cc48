import { build } from 'esbuild'
import { extname, join } from 'node:path'
import { joinRuntime, PARTS } from './bridge.ts'

/** Name under which a script of the bundle holds its exports, within a function of its own. */
const EXPORTS = 'carpoolRuntime'

/**
 * Bundles the world that a function runs in, for a bare context. What is here is taken apart by `splitRuntime`: the first script
 * boots a context. Its completion value is a function `boot(names, ...functions)`: `names` are the method names of the
 * GuestBridge between commas, `functions` the callbacks in that order. It returns the {@link GuestEntries}. That of a part is a
 * function that takes the native functions.
 *
 * Names stay as they are, for stack traces and `constructor.name`; white space goes.
 */
export async function bundleRuntime(): Promise<string> {
  const [main, ...parts] = await Promise.all([
    bundleScript('guest/main', 'boot'),
    ...PARTS.map((name) => bundleScript(`parts/${name}/index`, 'create')),
  ])
  return joinRuntime({ main, parts: PARTS.map((name, index) => [name, parts[index]!]) })
}

/** A script that evaluates to one function of a module. */
async function bundleScript(entry: string, exported: string): Promise<string> {
  const result = await build({
    entryPoints: [join(import.meta.dirname, `${entry}${extname(import.meta.filename)}`)],
    // Nothing from the folder that the server was started in may get into it.
    absWorkingDir: import.meta.dirname,
    bundle: true,
    write: false,
    format: 'iife',
    globalName: EXPORTS,
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
  })
  // Strict mode keeps frames and callers of the runtime from user code.
  return `(function(){'use strict';${result.outputFiles[0]!.text}\nreturn ${EXPORTS}.${exported}})()`
}
