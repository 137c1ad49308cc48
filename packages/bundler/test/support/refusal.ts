import { CarpoolError, type ErrorCode } from '@carpool/core'

/** Code and message of the error with which a promise rejects. */
export async function refusalOf(promise: Promise<unknown>): Promise<{ code: ErrorCode | 'none'; message: string }> {
  return promise.then(
    () => ({ code: 'none' as const, message: '' }),
    (error: unknown) => {
      if (!(error instanceof CarpoolError)) throw error
      return { code: error.code, message: error.message }
    },
  )
}
