import { CarpoolError } from '@carpool/core'
import { realpathSync, statSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'

/** The folder of a function: the path itself, or the folder that its one file is in. @throws CarpoolError `entry-not-found` */
export function functionFolder(path: string): string {
  const absolute = resolve(path)
  const found = statSync(absolute, { throwIfNoEntry: false })
  if (found === undefined) throw new CarpoolError('entry-not-found', `There is no file or folder ${JSON.stringify(path)}.`)
  // As the bundler names its inputs.
  const real = realpathSync(absolute)
  return found.isFile() ? dirname(real) : real
}

/** Whether a path lies below the folder in `node_modules` or in something hidden, where nobody edits a function. */
export function isUninteresting(folder: string, path: string): boolean {
  return partsBelow(folder, path)?.some((part) => part === 'node_modules' || part.startsWith('.')) ?? false
}

/** The inputs of a bundle that are edited although they lie outside of the folder, such as other packages of a workspace. */
export function inputsOutside(folder: string, inputs: readonly string[]): readonly string[] {
  return inputs.filter((input) => partsBelow(folder, input) === undefined)
}

function partsBelow(folder: string, path: string): readonly string[] | undefined {
  const parts = relative(folder, path).split(sep)
  return parts[0] === '..' ? undefined : parts
}
