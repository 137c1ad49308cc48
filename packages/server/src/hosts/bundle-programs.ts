import { dirname } from 'node:path'
import { bundleRuntime } from '@carpool/runtime'
import { build, stop, type Plugin } from 'esbuild'
import { HOST_FILES, ISOLATE_FOLDER_MARK, ISOLATED_VM_MARK, type HostPrograms } from './host-files.ts'

/**
 * Bundles what hosts run from its sources. In the program of the process, marks stand for what is somewhere else on each machine.
 * @param target the Node.js that will run it, as esbuild names it
 */
export async function bundlePrograms(target: string): Promise<HostPrograms> {
  try {
    const [host, runtime] = await Promise.all([bundleHost(target), bundleRuntime()])
    return { host, runtime }
  } finally {
    // Else esbuild's service process would stay for the whole life of the server.
    await stop()
  }
}

/**
 * A host that loads its own sources takes the types out of each, which needs 40 MB and a quarter of a second of CPU, every time
 * one starts; and it must be allowed to read them.
 */
async function bundleHost(target: string): Promise<string> {
  const result = await build({
    entryPoints: [HOST_FILES.main],
    // Else esbuild would look for a Yarn manifest from the folder up that the server was started in, and take packages from where
    // it says.
    absWorkingDir: dirname(HOST_FILES.main),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target,
    plugins: [isolatedVm],
    // Where host/src/addon.ts looks for the addon.
    define: { 'import.meta.dirname': JSON.stringify(ISOLATE_FOLDER_MARK) },
    logLevel: 'silent',
    tsconfigRaw: {},
  })
  return result.outputFiles[0]!.text
}

/** It has to be read from where it is, for it loads an addon. */
const isolatedVm: Plugin = {
  name: 'isolated-vm',
  setup(bundle) {
    bundle.onResolve({ filter: /^isolated-vm$/ }, () => ({ path: ISOLATED_VM_MARK, external: true }))
  },
}
