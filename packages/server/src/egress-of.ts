import { LIMIT_RANGES } from '@carpool/core'
import { Egress } from '@carpool/egress'
import type { Logger } from 'pino'
import type { ServerSettings } from './settings.ts'

/** What fetches for functions, as the settings have it. @throws CarpoolError of a setting that makes no sense */
export function egressOf(settings: ServerSettings, log: Logger): Egress {
  return new Egress({
    allow: settings.allowEgress,
    deny: settings.denyEgress,
    limits: {
      totalTimeoutMs: LIMIT_RANGES.wallMs.max,
      maxRequestBytes: settings.maxBodyBytes,
      maxConnections: settings.maxEgressConnections,
      maxConnectionsPerOrigin: settings.maxEgressConnectionsPerOrigin,
      maxMemoryBytes: settings.maxEgressBufferedBytes,
    },
    onThreadLost: ({ cause, restartInMs }) =>
      log.error({ err: cause, restartInMs }, 'the thread that fetches for functions has ended; a new one takes its place'),
  })
}
