import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundleRuntime } from '@carpool/runtime'
import { build, stop, type Plugin } from 'esbuild'
import { HOST_MAIN, ISOLATED_VM, ISOLATE_SOURCES } from './host-program.ts'

/** What a host process runs. */
export interface HostPrograms {
  /** The program of the process, as one module for Node.js. */
  readonly host: string
  /** What stands beside user code in each isolate, as one script. */
  readonly runtime: string
}

/** Bundles both once for all hosts that a server starts. */
export async function bundlePrograms(): Promise<HostPrograms> {
  try {
    const [host, runtime] = await Promise.all([bundleHost(), bundleRuntime()])
    return { host, runtime }
  } finally {
    // Else esbuild's service process would stay for the whole life of the server.
    await stop()
  }
}

/**
 * A host that loads its own sources takes the types out of each, which needs 40 MB and a quarter of a second of CPU, every time one starts; and
 * it must be allowed to read them.
 */
async function bundleHost(): Promise<string> {
  const result = await build({
    entryPoints: [HOST_MAIN],
    // Else esbuild would look for a Yarn manifest from the folder up that the server was started in, and take packages from where it says.
    absWorkingDir: dirname(HOST_MAIN),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: `node${process.versions.node}`,
    plugins: [isolatedVm],
    // Where the package of isolates looks for its addon.
    define: { 'import.meta.dirname': JSON.stringify(ISOLATE_SOURCES) },
    logLevel: 'silent',
    tsconfigRaw: {},
  })
  return result.outputFiles[0]!.text
}

/** It has to be read from where it is, for it loads an addon. */
const isolatedVm: Plugin = {
  name: 'isolated-vm',
  setup(bundle) {
    bundle.onResolve({ filter: /^isolated-vm$/ }, () => ({ path: pathToFileURL(ISOLATED_VM).href, external: true }))
  },
}
