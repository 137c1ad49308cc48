import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import type { Published } from './published.ts'
import { packageOf, ROOT } from './workspaces.ts'

/**
 * Bundles the code of a package from the sources of all workspaces that it uses. It is flat: what reads a file beside itself
 * does so from `dist/`, and `..` is the folder of the package. What only one command needs stays in a file of its own.
 * @param folder of the package
 * @returns the third-party packages that it imports
 */
export async function bundleCode(
  { entries, target }: Pick<Published, 'entries' | 'target'>,
  folder: string,
): Promise<readonly string[]> {
  const { metafile } = await build({
    entryPoints: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(ROOT, source)])),
    outdir: join(folder, 'dist'),
    absWorkingDir: ROOT,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target,
    plugins: [thirdPartyOutside],
    metafile: true,
    logLevel: 'error',
    tsconfigRaw: {},
  })
  const imported = Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter(({ external }) => external === true))
  return [
    ...new Set(
      imported
        .map(({ path }) => path)
        .filter((path) => !isBuiltin(path))
        .map(packageOf),
    ),
  ]
}

/** Only what is ours is bundled: npm installs the rest, with its licences, and mends it. */
const thirdPartyOutside: Plugin = {
  name: 'third-party-outside',
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === 'entry-point' || path.startsWith('@carpool/') ? undefined : { path, external: true },
    )
  },
}
