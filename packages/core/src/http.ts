/** Header names in lower case with their values, in order; a name may come more than once. */
export type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

/** An HTTP request as a function sees it. */
export interface RequestHead {
  readonly method: string
  /** Absolute URL; the path begins after the function's name. */
  readonly url: string
  readonly headers: HeaderList
  /** Address of the client, as text. */
  readonly clientIp: string
}

export interface ResponseHead {
  readonly status: number
  readonly headers: HeaderList
}

export interface HttpResponse extends ResponseHead {
  readonly body: Uint8Array
}
