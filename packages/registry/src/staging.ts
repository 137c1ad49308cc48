import { CarpoolError, type Revision, type RevisionConfig } from '@carpool/core'
import { contentHash } from './blob-store.ts'
import type { RegistryOptions } from './registry-types.ts'

export interface StageInput {
  readonly functionName: string
  readonly owner: string
  readonly code: string
  readonly sourceMap: string
  readonly config: RevisionConfig
}

/** A revision whose code is on disk, but which answers to no name yet. */
export interface StagedRevision extends RevisionConfig {
  readonly id: string
  readonly functionName: string
  readonly owner: string
  readonly codeBytes: number
  readonly codeHash: string
  readonly sourceMapHash: string
}

/**
 * Code and source map as bytes.
 * @throws CarpoolError `bundle-empty`, `bundle-too-large`, with the size and its limit
 */
export function checkedContents(
  { functionName, code, sourceMap }: Pick<StageInput, 'functionName' | 'code' | 'sourceMap'>,
  { maxBundleBytes, maxSourceMapBytes = 4 * maxBundleBytes }: RegistryOptions,
): [code: Buffer, sourceMap: Buffer] {
  if (code.trim() === '') throw new CarpoolError('bundle-empty', `The bundle of ${functionName} is empty.`)
  const check = (what: string, text: string, limitBytes: number): Buffer => {
    const sizeBytes = Buffer.byteLength(text)
    if (sizeBytes <= limitBytes) return Buffer.from(text)
    throw new CarpoolError(
      'bundle-too-large',
      `The ${what} of ${functionName} has ${sizeBytes} bytes; the limit is ${limitBytes} bytes.`,
    )
  }
  return [check('bundle', code, maxBundleBytes), check('source map', sourceMap, maxSourceMapBytes)]
}

/**
 * The id of a revision: the same code with the same configuration of the same function has the same id, whatever the order of its
 * keys. Functions of two owners never share one, not even when one gets the name after the other: what is kept by id must not be
 * either's.
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
