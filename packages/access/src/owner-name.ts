import { CarpoolError, checkFunctionName } from '@carpool/core'

/** Who owns what is deployed without saying for whom: there is always an owner of this name. */
export const DEFAULT_OWNER = 'default'

/** Checks the name of an owner: the rule is that of the names of functions. @throws CarpoolError `invalid-name` */
export function checkOwnerName(name: string): string {
  try {
    return checkFunctionName(name)
  } catch (cause) {
    const detail = (cause as Error).message.replace('is no function name', 'is no name of an owner')
    throw new CarpoolError('invalid-name', detail, { cause })
  }
}
