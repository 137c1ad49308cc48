import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { packageOf, ROOT, sourceOf } from './workspaces.ts'

/** A module that a declaration file names, after `from` or `import`. */
const SPECIFIER = /(\bfrom\s+|\bimport\s*\(\s*|\bimport\s+)(['"])([^'"]+)\2/g

/**
 * Copies the declarations that a source and all that it names need, as `tsc -b` wrote them, to `types/` of a package. Whatever
 * they name of a workspace becomes a path to its copy.
 * @param source from the root folder
 * @returns the copy of the source's declarations, relative to the package, and the third-party packages that they name
 */
export function copyTypes(source: string, folder: string): { types: string; named: readonly string[] } {
  const thirdParty = new Set<string>()
  const done = new Set<string>()
  const waiting = [source]
  for (const file of waiting) {
    if (done.has(file)) continue
    done.add(file)
    const copy = join(folder, copyOf(file))
    const text = readFileSync(join(ROOT, declarationsOf(file)), 'utf8').replace(SPECIFIER, (whole, before, quote, specifier) => {
      const named = sourceNamed(String(specifier), file)
      if (named === undefined) {
        if (!isBuiltin(String(specifier))) thirdParty.add(packageOf(String(specifier)))
        return whole
      }
      waiting.push(named)
      return `${String(before)}${String(quote)}${pathTo(named, file)}${String(quote)}`
    })
    mkdirSync(dirname(copy), { recursive: true })
    writeFileSync(copy, text.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''))
  }
  return { types: copyOf(source), named: [...thirdParty] }
}

/** The source that an import in another one stands for; undefined: it is not ours. */
function sourceNamed(specifier: string, importer: string): string | undefined {
  if (specifier.startsWith('@carpool/')) return sourceOf(specifier)
  if (!specifier.startsWith('.')) return undefined
  const source = join(dirname(importer), specifier.replace(/\.js$/, '.ts'))
  if (!existsSync(join(ROOT, source))) throw new Error(`${importer} names ${specifier}, which is not there.`)
  return source
}

/** `packages/core/src/errors.ts` → `packages/core/dist/errors.d.ts` */
function declarationsOf(source: string): string {
  return source.replace('/src/', '/dist/').replace(/\.ts$/, '.d.ts')
}

/** `packages/core/src/errors.ts` → `types/core/errors.d.ts` */
function copyOf(source: string): string {
  return join('types', source.replace(/^packages\//, '').replace('/src/', '/')).replace(/\.ts$/, '.d.ts')
}

function pathTo(named: string, importer: string): string {
  const path = relative(dirname(copyOf(importer)), copyOf(named)).replace(/\.d\.ts$/, '.js')
  return path.startsWith('.') ? path : `./${path}`
}
