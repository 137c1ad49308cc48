import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where that is what a host process is made of. */
export interface HostFiles {
  /** Its program: the source, or what was bundled of it when this was packed. */
  readonly main: string
  /** What stands beside user code in each isolate, when it was packed; undefined: it is bundled from its sources. */
  readonly packedRuntime: string | undefined
  /** Folder from which `host/src/addon.ts` looks for the addon. */
  readonly isolateFolder: string
  /** isolated-vm, which Node.js loads from where it is. */
  readonly isolatedVm: string
}

/** A packed server has the program of its hosts beside it (pack/src/host-programs.ts); in the checkout nothing is there. */
const PACKED_MAIN = join(import.meta.dirname, 'host/process.js')

export const HOST_FILES: HostFiles = existsSync(PACKED_MAIN) ? packedFiles() : sourceFiles()

function packedFiles(): HostFiles {
  return {
    main: PACKED_MAIN,
    packedRuntime: join(import.meta.dirname, 'host/runtime.js'),
    isolateFolder: import.meta.dirname,
    isolatedVm: join(import.meta.dirname, '../isolated-vm/isolated-vm.js'),
  }
}

function sourceFiles(): HostFiles {
  const main = fileURLToPath(import.meta.resolve('@carpool/host-process'))
  return { main, packedRuntime: undefined, isolateFolder: dirname(main), isolatedVm: createRequire(main).resolve('isolated-vm') }
}
