import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AuditLog, openAccess, type AccessOptions, type AccessStore } from '@carpool/access'
import { CarpoolError, monotonicClock } from '@carpool/core'
import { openLedger, type Ledger } from '@carpool/ledger'
import { openRegistry, type Registry, type RegistryOptions } from '@carpool/registry'
import { makeFolder } from '@carpool/storage'
import { FunctionLogs } from '@carpool/telemetry'
import type { Logger } from 'pino'
import { loadAdminToken } from './admin-token.ts'
import type { ServerSettings } from './settings/table.ts'

/** What the data folder holds. */
export interface Stores {
  /** Absolute. */
  readonly dataDir: string
  /** The control plane's token, for the operator of this machine. */
  readonly token: string
  readonly registry: Registry
  readonly access: AccessStore
  readonly audit: AuditLog
  readonly logs: FunctionLogs
  readonly ledger: Ledger
  /** Writes what waits to be written, and closes them. */
  close(): Promise<void>
}

/** @throws CarpoolError `data-unusable` if the folder cannot be made, read and written to, or holds what cannot be used */
export async function openStores(settings: ServerSettings, log: Logger): Promise<Stores> {
  const dataDir = resolve(settings.data)
  const { token, registry, access } = openMetadata(dataDir, {
    registry: {
      codeCacheKey: `${process.versions.v8}-${process.arch}`,
      maxBundleBytes: settings.maxBundleBytes,
      onProblem: (problem) => log.warn(problem, 'stored data is not sound'),
    },
    access: {
      ...(settings.secretKeyFile !== '' && { secretKeyFile: resolve(settings.secretKeyFile) }),
      onProblem: (cause) => log.warn({ err: cause }, 'it cannot be written when tokens are used'),
    },
  })
  const { keyFault } = access.secrets
  if (keyFault !== undefined)
    log.error({ keyFault }, 'the secrets of functions cannot be read or set with this key: functions that have some do not load')
  const withoutSecrets = registry.list().filter((revision) => access.secrets.isLost(revision))
  if (withoutSecrets.length > 0)
    log.error(
      { functions: withoutSecrets.map(({ functionName }) => functionName) },
      'the secrets of functions are lost: set them again',
    )
  const keyMode = statSync(join(dataDir, 'secret-key'), { throwIfNoEntry: false })?.mode ?? 0
  if ((keyMode & 0o077) !== 0)
    log.warn('the file secret-key of the data folder can be used by others than its owner: its mode should be 600')
  const audit = new AuditLog(join(dataDir, 'audit.ndjson'), {
    clock: monotonicClock,
    onProblem: ({ lostEntries, cause }) => log.error({ lostEntries, err: cause }, 'the audit log cannot be written'),
  })
  const logs = new FunctionLogs(dataDir, {
    // A registry that knows none may be one that was lost.
    isFunction: (name) => registry.ownerOf(name) !== undefined || registry.list().length === 0,
    onProblem: (problem) => log.warn(problem, 'log lines were dropped'),
  })
  const closeMetadata = (): void => {
    access.close()
    registry.close()
  }
  const ledger = await openLedger(dataDir, {
    retentionDays: settings.retentionDays,
    onProblem: ({ message, cause, lost }) => log.error({ err: cause, lost }, message),
  }).catch((cause: unknown) => {
    closeMetadata()
    throw cause
  })
  const close = async (): Promise<void> => {
    await logs.close()
    await ledger.close()
    await audit.flush()
    closeMetadata()
  }
  return { dataDir, token, registry, access, audit, logs, ledger, close }
}

function openMetadata(
  dataDir: string,
  options: { registry: RegistryOptions; access: AccessOptions },
): Pick<Stores, 'token' | 'registry' | 'access'> {
  try {
    makeFolder(dataDir)
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
