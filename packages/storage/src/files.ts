import { closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, statSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { CarpoolError } from '@carpool/core'

/** A named pipe would be waited for. */
const FOR_READING = constants.O_RDONLY | constants.O_NONBLOCK

/** Opens a file for reading. @throws CarpoolError `data-unusable` if it is a pipe, a folder or the like; Error of the system */
export function openFileSync(path: string): number {
  const descriptor = openSync(path, FOR_READING)
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  throw noFile(path)
}

/** As {@link openFileSync}. */
export async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, FOR_READING)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw noFile(path)
}

/**
 * Makes a folder and those that it is in, for their user alone, unless they are there. Node's own `recursive` tries for ever
 * where a folder that is there takes no other, as /proc.
 * @throws Error of the system
 */
export function makeFolder(path: string): void {
  if (!existsSync(dirname(path))) makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw cause
  }
}

function noFile(path: string): CarpoolError {
  return new CarpoolError(
    'data-unusable',
    `${basename(path)} in the data folder is no file, but a folder, a named pipe or the like.`,
  )
}
