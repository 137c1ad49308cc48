import { posix } from 'node:path'
import { labelPath } from './label-path.ts'

/** Where a function's folder seems to be. Deep enough for the paths of what stands beside it. */
export const VIRTUAL_ROOT = '/opt/carpool/function'

/** What `__filename` is in a module: it says where the module is in the function, and nothing of the machine. */
export function virtualPath(path: string, folder: string): string {
  return posix.resolve(VIRTUAL_ROOT, labelPath(path, folder))
}
