import { basename, extname } from 'node:path'
import type { Place } from './entry.ts'

const LONGEST_NAME = 63

/** A function name made from a folder's name, or from a file's; the folder's if the file is called `index`. */
export function suggestName({ folder, file }: Place): string {
  const stem = file === undefined ? undefined : basename(file, extname(file))
  return toName(stem === undefined || stem === 'index' ? basename(folder) : stem)
}

function toName(text: string): string {
  const name = text
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST_NAME)
    .replace(/^-+|-+$/g, '')
  return name === '' ? 'function' : name
}
