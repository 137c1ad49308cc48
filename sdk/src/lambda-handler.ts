/** An HTTP request as AWS Lambda gets it: API Gateway's event of payload format 2.0. */
export interface LambdaEvent {
  readonly version: '2.0'
  readonly routeKey: string
  readonly rawPath: string
  /** Without the question mark. */
  readonly rawQueryString: string
  readonly cookies?: readonly string[]
  /** Names in lower case; values of one name are joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly queryStringParameters?: Readonly<Record<string, string>>
  readonly requestContext: {
    readonly accountId: string
    readonly apiId: string
    readonly domainName: string
    readonly domainPrefix: string
    readonly http: {
      readonly method: string
      readonly path: string
      readonly protocol: string
      readonly sourceIp: string
      readonly userAgent: string
    }
    readonly requestId: string
    readonly routeKey: string
    readonly stage: string
    /** Such as `12/Mar/2020:19:03:58 +0000`. */
    readonly time: string
    /** Milliseconds since 1970. */
    readonly timeEpoch: number
  }
  /** Absent if the request has none. */
  readonly body?: string
  /** Whether `body` is base64: so it is unless the bytes are UTF-8 text. */
  readonly isBase64Encoded: boolean
}

/** The second argument of a Lambda handler. */
export interface LambdaContext {
  readonly functionName: string
  readonly functionVersion: string
  readonly invokedFunctionArn: string
  readonly memoryLimitInMB: string
  readonly awsRequestId: string
  readonly logGroupName: string
  readonly logStreamName: string
  /** Without effect. */
  callbackWaitsForEmptyEventLoop: boolean
  getRemainingTimeInMillis(): number
}

/** A result with a `statusCode` is the response. */
export interface LambdaResponse {
  /** 200 to 599. */
  readonly statusCode: number
  readonly headers?: Readonly<Record<string, string | number | boolean>>
  readonly multiValueHeaders?: Readonly<Record<string, ReadonlyArray<string | number | boolean>>>
  readonly cookies?: readonly string[]
  readonly body?: string
  readonly isBase64Encoded?: boolean
}

/** Any other value is the JSON body of a 200. */
export type LambdaResult = LambdaResponse | string | number | boolean | object | null | undefined | void

export type LambdaCallback = (error?: unknown, result?: LambdaResult) => void

/** `export const handler`. One that declares three parameters answers by the callback, or by a promise. */
export type LambdaHandler<Event = LambdaEvent> = (
  event: Event,
  context: LambdaContext,
  callback: LambdaCallback,
) => LambdaResult | Promise<LambdaResult>
