import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import { PREBUILT_CLOCKS } from './host-program.ts'

/** What is missing for host processes to run here, in a sentence; undefined if nothing is. */
export function addonProblem(platform: string, arch: string, abi: string): string | undefined {
  if (existsSync(join(PREBUILT_CLOCKS, `${platform}-${arch}-${abi}.node`))) return undefined
  return (
    `The addon of host processes is not built for ${platform}-${arch} and Node.js with ABI ${abi}: ` +
    '`npm run build:clock` builds it, with a C++ compiler, on Linux.'
  )
}

/** @throws CarpoolError `platform-unsupported` */
export function requireAddon({ platform, arch, versions }: NodeJS.Process = process): void {
  const problem = addonProblem(platform, arch, versions.modules)
  if (problem !== undefined) throw new CarpoolError('platform-unsupported', problem)
}
