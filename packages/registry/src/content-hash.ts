import { createHash } from 'node:crypto'
import type { RevisionConfig } from '@carpool/core'

/** SHA-256 in hex. */
export function contentHash(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** The id of a revision: the same code with the same configuration under the same name has the same id, whatever the order of its keys. */
export function revisionId(functionName: string, codeHash: string, config: RevisionConfig): string {
  const { secretsVersion = 0, egress } = config
  const canonical = JSON.stringify([
    functionName,
    config.handlerExport ?? null,
    sortedEntries(config.limits),
    sortedEntries(config.env),
    // Functions without secrets have the ids that they had before there were any.
    ...(secretsVersion > 0 ? [secretsVersion] : []),
    ...(egress === undefined ? [] : [{ egress }]),
  ])
  return contentHash(`${codeHash}\n${canonical}`).slice(0, 16)
}

function sortedEntries(record: object): [string, unknown][] {
  return Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))
}
