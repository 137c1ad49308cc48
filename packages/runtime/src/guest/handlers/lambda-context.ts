import type { GuestOptions } from '../../bridge.ts'
import type { Invocation } from '../invocation.ts'
import { remainingMs } from './execution-context.ts'

/** The second argument of a Lambda handler. Region and account are made up, in the shape that libraries parse. */
export function lambdaContext(invocation: Invocation, options: GuestOptions): object {
  const { functionName, revision, limits } = options
  return {
    functionName,
    functionVersion: revision,
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${functionName}`,
    memoryLimitInMB: `${limits.memoryMb}`,
    awsRequestId: invocation.head.invocationId,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: `[${revision}]`,
    /** Without effect: an invocation ends with its answer, and what is still open goes on in the background. */
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => remainingMs(invocation, options),
  }
}
