import type { HeaderList } from './http.ts'

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
