import { createHash } from 'node:crypto'
import type { Revision, RevisionConfig } from '@carpool/core'

/** SHA-256 in hex. */
export function contentHash(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/**
 * The id of a revision: the same code with the same configuration of the same function has the same id, whatever the order of its keys.
 * Functions of two owners never share one, not even when one gets the name after the other: what is kept by id must not be either's.
 */
export function revisionId(
  { functionName, owner }: Pick<Revision, 'functionName' | 'owner'>,
  codeHash: string,
  config: RevisionConfig,
): string {
  const { secretsVersion = 0, egress } = config
  const canonical = JSON.stringify([
    functionName,
    owner,
    config.handlerExport ?? null,
    sortedEntries(config.limits),
    sortedEntries(config.env),
    secretsVersion,
    egress ?? null,
  ])
  return contentHash(`${codeHash}\n${canonical}`).slice(0, 16)
}

function sortedEntries(record: object): [string, unknown][] {
  return Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))
}
