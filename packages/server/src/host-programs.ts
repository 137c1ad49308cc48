import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { HOST_FILES } from './host-files.ts'

/** What a host process runs. */
export interface HostPrograms {
  /** The program of the process, as one module for Node.js. */
  readonly host: string
  /** What stands beside user code in each isolate, as one script. */
  readonly runtime: string
}

/** Stands in the bundled program for the URL of isolated-vm, and for the folder from which the addon is looked for. */
export const ISOLATED_VM_MARK = 'carpool:isolated-vm'
export const ISOLATE_FOLDER_MARK = 'carpool:isolate-folder'

/** Gets both, once for all hosts that a server starts: as they were packed, else bundled from the sources now. */
export async function hostPrograms(): Promise<HostPrograms> {
  const { host, runtime } = await unplacedPrograms()
  return { host: placed(host), runtime }
}

async function unplacedPrograms(): Promise<HostPrograms> {
  const { main, packedRuntime } = HOST_FILES
  if (packedRuntime === undefined) return (await import('./bundle-programs.ts')).bundlePrograms(`node${process.versions.node}`)
  const [host, runtime] = await Promise.all([readFile(main, 'utf8'), readFile(packedRuntime, 'utf8')])
  return { host, runtime }
}

/** In the place of its marks, the program gets the paths of this machine. */
function placed(host: string): string {
  const { isolatedVm, isolateFolder } = HOST_FILES
  return host
    .replaceAll(JSON.stringify(ISOLATED_VM_MARK), () => JSON.stringify(pathToFileURL(isolatedVm).href))
    .replaceAll(JSON.stringify(ISOLATE_FOLDER_MARK), () => JSON.stringify(isolateFolder))
}
