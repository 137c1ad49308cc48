import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The files in a folder and below, by their paths in it. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted()
}

/** The files in a folder and below that hold a text somewhere, whatever else they hold. */
export function filesWith(folder: string, text: string): string[] {
  return filesIn(folder).filter((file) => readFileSync(join(folder, file)).includes(text))
}
