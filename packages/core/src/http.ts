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

/** A fetch of a function, but for its body. */
export interface FetchHead {
  readonly method: string
  readonly url: string
  readonly headers: HeaderList
  /** What to do with a redirect: follow it, fail, or give the redirecting response itself. */
  readonly redirect: 'follow' | 'error' | 'manual'
}

/** The head of what a function's fetch got. */
export interface FetchedHead {
  readonly ok: true
  readonly status: number
  readonly statusText: string
  readonly headers: HeaderList
  /** The URL that answered, without its fragment. */
  readonly url: string
  readonly redirected: boolean
}

export interface FailedFetch {
  readonly ok: false
  /** For the function: holds nothing of this machine. */
  readonly message: string
}

/** How a fetch of a function ended, but for the body of the response. */
export type FetchResult = FetchedHead | FailedFetch
