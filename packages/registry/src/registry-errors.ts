import { CarpoolError, type Revision } from '@carpool/core'
import type { DisabledInfo } from './disabled-functions.ts'

/** What is told of a function that is not there; also of one that somebody may not know of. */
export function functionNotFound(name: string): CarpoolError {
  return new CarpoolError('not-found', `There is no function named ${JSON.stringify(name.slice(0, 80))}.`)
}

/** What a call of a function that is disabled is answered. */
export function functionDisabled(name: string, { reason, at }: DisabledInfo): CarpoolError {
  return new CarpoolError(
    'function-disabled',
    `${name} is disabled since ${at} because ${reason}. An operator can enable it with "carpool enable ${name}".`,
  )
}

/** @param what of the revision is not sound, such as `bundle` */
export function damaged(what: string, { functionName, id }: Pick<Revision, 'functionName' | 'id'>): CarpoolError {
  return new CarpoolError(
    'data-unusable',
    `The ${what} of ${functionName}, revision ${id}, is missing or damaged; deploy it again.`,
  )
}
