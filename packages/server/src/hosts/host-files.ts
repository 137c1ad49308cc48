import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CarpoolError } from '@carpool/core'

/** Where that is what a host process is made of. */
interface HostFiles {
  /** Its program: the source, or what was bundled of it when this was packed. */
  readonly main: string
  /** What stands beside user code in each isolate, when it was packed; undefined: it is bundled from its sources. */
  readonly packedRuntime: string | undefined
  /** Folder from which `host/src/addon.ts` looks for the addon. */
  readonly isolateFolder: string
  /** isolated-vm, which Node.js loads from where it is. */
  readonly isolatedVm: string
}

/** A packed server has the program of its hosts beside it (pack/src/server-files.ts); in the checkout nothing is there. */
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

/** Our own addon, for each platform that it is built for. */
const PREBUILT_ADDONS = join(HOST_FILES.isolateFolder, '../native/prebuilt')

/** All that a host process reads: its program comes to it through a pipe. */
export function hostFolders(): readonly string[] {
  return [PREBUILT_ADDONS, ...packageFolders(dirname(HOST_FILES.isolatedVm)).folders]
}

/** The same as paths for Node's permission model, with those at which nothing is that is asked for on the way. */
export function hostReadPaths(): readonly string[] {
  const { folders, lookups } = packageFolders(dirname(HOST_FILES.isolatedVm))
  return [PREBUILT_ADDONS, ...folders, ...lookups].map((folder) => join(folder, '*'))
}

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

/**
 * What has to be read to load a package: its folder and those of all that it depends on, wherever they really are, and where
 * links lead to them; and the folders at which Node.js looks for a dependency before the one that has it.
 * @param folder of the package, where it really is
 */
export function packageFolders(folder: string): { readonly folders: readonly string[]; readonly lookups: readonly string[] } {
  const packages = [realpathSync(folder)]
  const folders = new Set(packages)
  const lookups: string[] = []
  for (const folder of packages) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>
    }
    const searched = createRequire(join(folder, 'package.json')).resolve.paths('x') ?? []
    for (const name of Object.keys(dependencies)) {
      const modules = searched.find((candidate) => existsSync(join(candidate, name)))
      if (modules === undefined) continue
      lookups.push(...searched.slice(0, searched.indexOf(modules)).map((candidate) => join(candidate, name)))
      const path = join(modules, name)
      const found = realpathSync(path)
      // The folder of the link, for of two links of which one's name begins with the other's, Node.js' permission model lets only
      // one be read.
      if (found !== path) folders.add(dirname(path))
      if (folders.has(found)) continue
      folders.add(found)
      packages.push(found)
    }
  }
  return { folders: [...folders], lookups }
}

/** What is missing for host processes to run here, in a sentence; undefined if nothing is. */
export function addonProblem(platform: string, arch: string, abi: string): string | undefined {
  if (existsSync(join(PREBUILT_ADDONS, `${platform}-${arch}-${abi}.node`))) return undefined
  return (
    `The addon of host processes is not built for ${platform}-${arch} and Node.js with ABI ${abi}: ` +
    '`npm run build:addon` builds it, with a C++ compiler, on Linux.'
  )
}

/** @throws CarpoolError `platform-unsupported` */
export function requireAddon({ platform, arch, versions }: NodeJS.Process = process): void {
  const problem = addonProblem(platform, arch, versions.modules)
  if (problem !== undefined) throw new CarpoolError('platform-unsupported', problem)
}
