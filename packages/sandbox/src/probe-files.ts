import { extname, join, sep } from 'node:path'

/** The program with a hole. It is beside this file in `probe/`, also when both are packed. */
export const PROBE_MAIN = join(import.meta.dirname, 'probe', `process${extname(import.meta.filename)}`)
/** The folder that it must be able to read: that of its package. */
export const PROBE_FOLDERS: readonly string[] = [join(import.meta.dirname, '..') + sep]
