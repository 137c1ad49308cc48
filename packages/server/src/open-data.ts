import { mkdirSync } from 'node:fs'
import { openAccess, type AccessOptions, type AccessStore } from '@carpool/access'
import { CarpoolError } from '@carpool/core'
import { openRegistry, type Registry, type RegistryOptions } from '@carpool/registry'
import { loadAdminToken } from './admin-token.ts'

export interface DataOptions {
  readonly registry: RegistryOptions
  readonly access: AccessOptions
}

/** Opens what the data folder holds. @throws CarpoolError `data-unusable` if the folder cannot be made, read and written to */
export function openData(dataDir: string, options: DataOptions): { token: string; registry: Registry; access: AccessStore } {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const token = loadAdminToken(dataDir)
    // First: it keeps other servers out of the folder.
    const registry = openRegistry(dataDir, options.registry)
    try {
      return { token, registry, access: openAccess(dataDir, options.access) }
    } catch (cause) {
      registry.close()
      throw cause
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (cause instanceof CarpoolError || code === undefined) throw cause
    throw new CarpoolError('data-unusable', `The data folder ${dataDir} (--data) cannot be used: ${code}.`, { cause })
  }
}
