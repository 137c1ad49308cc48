import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly description?: string
  readonly license?: string
  readonly sideEffects?: boolean
  readonly workspaces?: readonly string[]
  readonly exports?: Readonly<Record<string, string>>
  readonly bin?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
}

/** Folder of each workspace, by name. */
export const WORKSPACES: ReadonlyMap<string, string> = new Map(
  (readManifest('.').workspaces ?? []).flatMap((pattern) =>
    globSync(`${pattern}/package.json`, { cwd: ROOT })
      .map((file) => file.slice(0, -'/package.json'.length))
      .map((folder) => [readManifest(folder).name, folder] as const),
  ),
)

/** The name of the package in an import: `a` of `a/b`, `@a/b` of `@a/b/c`. */
export function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** The source that a workspace's name, or what it exports under a path, stands for: from the root folder. */
export function sourceOf(specifier: string): string {
  const name = packageOf(specifier)
  const folder = WORKSPACES.get(name)
  const source = folder && readManifest(folder).exports?.[`.${specifier.slice(name.length)}`]
  if (folder === undefined || source === undefined) throw new Error(`No workspace exports ${specifier}.`)
  return join(folder, source)
}

/** The version of a third-party package that the workspaces pin. @throws Error if they do not agree, or none names it */
export function pinnedVersion(name: string): string {
  const versions = new Set(
    [...WORKSPACES.values()]
      .map((folder) => readManifest(folder).dependencies?.[name])
      .filter((version) => version !== undefined),
  )
  const [version] = versions
  if (version === undefined || versions.size > 1) throw new Error(`${name} is pinned to ${versions.size} versions.`)
  return version
}
