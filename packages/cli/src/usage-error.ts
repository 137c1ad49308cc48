import { CarpoolError } from '@carpool/core'

/** A command line that makes no sense. @param reason what is wrong with it; commander's own texts are taken as they are */
export function usageError(reason: string): CarpoolError {
  const text = reason
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/\.$/, '')
  return new CarpoolError('usage', `${text}. See: carpool --help`)
}
