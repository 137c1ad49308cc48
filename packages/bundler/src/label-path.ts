import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { sdkFolder } from './sdk-fallback.ts'

/** Our own files, wherever we are installed, get the name under which an author knows them. */
const OWN_FOLDERS: ReadonlyArray<readonly [folder: string, label: string]> = [
  [import.meta.dirname + sep, 'node_modules/@carpool/bundler/'],
  ...(sdkFolder() === undefined ? [] : [[sdkFolder()!, 'node_modules/@carpool/sdk/'] as const]),
]

/**
 * Names a file in code, source maps and messages: relative to the function's folder with forward slashes; packages from
 * `node_modules/` on, wherever they are installed. So a bundle says nothing of the machine, and is the same on every machine.
 * @param path absolute, or relative to the folder
 */
export function labelPath(path: string, folder: string): string {
  // A prefix of two characters or more and a colon is a namespace of the bundler, or the scheme of a source map.
  const [, namespace = '', rest = ''] = /^(\(?[\w-]{2,}\)?:)?(.*)$/s.exec(path) ?? []
  const absolute = resolve(folder, rest)
  const own = OWN_FOLDERS.find(([prefix]) => absolute.startsWith(prefix))
  if (own !== undefined) return namespace + own[1] + slashes(absolute.slice(own[0].length))
  const label = slashes(namespace !== '' && !isAbsolute(rest) ? rest : relative(folder, absolute))
  const inPackages = label.indexOf('node_modules/')
  if (inPackages !== -1) return namespace + label.slice(inPackages)
  // Another drive has no relative path.
  return namespace + (isAbsolute(label) ? slashes(relative(dirname(label), label)) : label)
}

/** The same for a source of a source map that esbuild made: a URL, in which all but plain letters is percent-encoded. */
export function labelSource(source: string, folder: string): string {
  return labelPath(decodeURIComponent(source), folder)
}

function slashes(path: string): string {
  return path.replaceAll('\\', '/')
}
