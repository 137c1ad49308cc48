import type { FetchedHead, Holder } from '@carpool/core'
import { failure } from './failure.ts'
import { Inflow, type Source } from './inflow.ts'
import type { StreamPart, StreamSide } from './messages.ts'
import { Outflow } from './outflow.ts'
import type { Outside } from './outside.ts'

/** Where what is said of the bodies of a fetch goes. */
export interface FetchPost {
  head(head: FetchedHead): void
  data(part: StreamPart): void
  credit(bytes: number): void
  /** The server takes no more of the request's body. */
  stopped(): void
}

export interface FetchStreamInit {
  readonly holder: Holder
  /** Whether the request's body streams. */
  readonly streams: boolean
  /** Whether the response's may. */
  readonly takesStream: boolean
}

/** The bodies of one fetch, as far as they stream. */
export class FetchStream {
  readonly takesStream: boolean
  /** Absent: the request has no body that streams. */
  readonly body: RequestBody | undefined
  /** Called when the function breaks one of them off. */
  onAbort: ((cause: Error) => void) | undefined
  readonly #outside: Pick<Outside, 'memory'>
  readonly #holder: Holder
  readonly #post: FetchPost
  #inflow: Inflow | undefined
  #aborted: Error | undefined

  constructor(outside: Pick<Outside, 'memory'>, { holder, streams, takesStream }: FetchStreamInit, post: FetchPost) {
    this.#outside = outside
    this.#holder = holder
    this.#post = post
    this.takesStream = takesStream
    if (streams) this.body = new RequestBody(outside, holder, post)
  }

  /** Why it was broken off before it began. */
  get aborted(): Error | undefined {
    return this.#aborted
  }

  receive({ bytes, end }: StreamPart): void {
    try {
      this.body?.receive(bytes, end === true)
    } catch (cause) {
      this.#abort(cause as Error)
    }
  }

  credit(bytes: number): void {
    this.#inflow?.credit(bytes)
  }

  abort(side: StreamSide): void {
    this.#abort(failure(side === 'sent' ? 'request-broke-off' : 'aborted'))
  }

  /** The response begins to stream. @param posted called when the last of it was passed on */
  respond(head: FetchedHead, source: Source, posted: () => void): Inflow {
    this.#post.head(head)
    this.#inflow = new Inflow({
      holder: this.#holder,
      memory: this.#outside.memory,
      source,
      post: (part) => {
        this.#post.data(part)
        if (part.end === true) posted()
      },
    })
    return this.#inflow
  }

  /** The fetch is over. */
  close(): void {
    this.#inflow?.close()
    this.body?.close()
  }

  #abort(cause: Error): void {
    this.#aborted ??= cause
    this.onAbort?.(cause)
  }
}

/**
 * The body of a request, in chunks as the function sends them. The next one is given when the connection has taken the one
 * before.
 */
export class RequestBody implements AsyncIterable<Uint8Array> {
  /** Called when some of it was taken. */
  onTaken: (() => void) | undefined
  readonly #outflow: Outflow
  readonly #post: FetchPost
  #chunk: { readonly bytes: Uint8Array; readonly taken: () => void } | undefined
  #isEnded = false
  #isClosed = false
  #isTaken = false
  #wake: (() => void) | undefined

  constructor({ memory }: Pick<Outside, 'memory'>, holder: Holder, post: FetchPost) {
    this.#post = post
    this.#outflow = new Outflow({
      holder,
      memory,
      write: (bytes, taken) => {
        this.#chunk = { bytes, taken }
        this.#wake?.()
      },
      end: () => {
        this.#isEnded = true
        this.#wake?.()
      },
      credit: (bytes) => post.credit(bytes),
    })
    this.#outflow.start()
  }

  /** Whether some of it was given away, so that it cannot be sent again. */
  get isTaken(): boolean {
    return this.#isTaken
  }

  /** @throws failure if it is more than there is room or memory for */
  receive(bytes: Uint8Array, isEnd: boolean): void {
    this.#outflow.receive(bytes)
    if (isEnd) this.#outflow.end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    this.#isTaken = true
    try {
      while (!this.#isClosed) {
        const chunk = this.#chunk
        if (chunk !== undefined) {
          this.#chunk = undefined
          yield chunk.bytes
          chunk.taken()
          this.onTaken?.()
        } else if (this.#isEnded) {
          return
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve))
        }
      }
      throw failure('aborted')
    } finally {
      if (!this.#isEnded && !this.#isClosed) this.#post.stopped()
    }
  }

  close(): void {
    this.#isClosed = true
    this.#outflow.close()
    this.#wake?.()
  }
}
