import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/**
 * What has to be read to load a package: its folder and those of all that it depends on, wherever they really are, and where links lead to
 * them.
 * @param folder of the package, where it really is
 */
export function packageFolders(folder: string): readonly string[] {
  const packages = [realpathSync(folder)]
  const folders = new Set(packages)
  for (const folder of packages) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>
    }
    const searched = createRequire(join(folder, 'package.json')).resolve.paths('x') ?? []
    for (const name of Object.keys(dependencies)) {
      const modules = searched.find((candidate) => existsSync(join(candidate, name)))
      if (modules === undefined) continue
      const path = join(modules, name)
      const found = realpathSync(path)
      // The folder of the link, for of two links of which one's name begins with the other's, Node.js' permission model lets only one be read.
      if (found !== path) folders.add(dirname(path))
      if (folders.has(found)) continue
      folders.add(found)
      packages.push(found)
    }
  }
  return [...folders]
}
