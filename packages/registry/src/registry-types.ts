import { CarpoolError, type HandlerForm, type Revision } from '@carpool/core'
import type { DiskSpace } from './blob-store.ts'

export interface RegistryOptions {
  /** What a code cache depends on besides the code, such as V8's version and the processor. Caches of another key are dropped. */
  readonly codeCacheKey: string
  /** Largest bundle, in bytes of UTF-8. */
  readonly maxBundleBytes: number
  /** Largest source map, in bytes of UTF-8. Default: four times `maxBundleBytes`. */
  readonly maxSourceMapBytes?: number
  /** Revisions kept for each function, with the live one. Default: 10. */
  readonly historyLimit?: number
  readonly now?: () => Date
  /** Of the data folder. Default: what the system says. */
  readonly diskSpace?: () => DiskSpace
  /** Called when stored data is missing or damaged. */
  readonly onProblem?: (problem: RegistryProblem) => void
}

export interface RegistryProblem {
  readonly functionName: string
  readonly revision: string
  readonly detail: string
}

/** What was learned of a staged revision by loading it. */
export interface PublishInput {
  readonly form: HandlerForm
  readonly codeCache?: Uint8Array
}

export interface RouteChange {
  readonly functionName: string
  /** The one that was live, or damaged if it was removed. Absent: the name is new. */
  readonly previous?: Revision
  /** Absent: the function was removed. */
  readonly current?: Revision
}

/** The error for a function that does not exist; also for another owner's. */
export function functionNotFound(name: string): CarpoolError {
  return new CarpoolError('not-found', `There is no function named ${JSON.stringify(name.slice(0, 80))}.`)
}

/** @param what of the revision is not sound, such as `bundle` */
export function damaged(what: string, { functionName, id }: Pick<Revision, 'functionName' | 'id'>): CarpoolError {
  return new CarpoolError(
    'data-unusable',
    `The ${what} of ${functionName}, revision ${id}, is missing or damaged; deploy it again.`,
  )
}
