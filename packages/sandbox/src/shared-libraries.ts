import { isAbsolute } from 'node:path'
import { systemReport } from './system-report.ts'

/** The libraries of the Node.js binary that runs this, and their loader, by the paths where it found them. */
export function sharedLibraries(): readonly string[] {
  const { sharedObjects = [] } = systemReport()
  return sharedObjects.filter((path) => isAbsolute(path) && !path.endsWith('.node'))
}
