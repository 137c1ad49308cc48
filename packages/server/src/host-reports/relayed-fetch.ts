import { ownMemoryOf, type Holder } from '@carpool/core'
import type { EgressStream, FetchEvents, StreamPart, StreamSide } from '@carpool/egress'
import type { StreamRoom, StreamSource, StreamTarget } from '@carpool/fleet'
import { NO_BODY, type StreamData } from '@carpool/wire'
import type { FetchedBytes, FetchingHost } from './egress-relay.ts'

/** An open fetch between its host and the egress, and its bodies: each of them may pass the host by. */
export class RelayedFetch implements StreamSource, StreamTarget {
  /** Set at once. */
  stream: EgressStream | undefined
  /** The head of its response has come ahead of the body. */
  hasHead = false
  isStopped = false
  /** What the egress has got of the request's body and not passed on. */
  aheadBytes = 0
  readonly #host: FetchingHost
  readonly #whose: Holder
  readonly #number: number
  /** Where the request's body comes from if not from the host, and where the response's goes to. */
  #source: Pick<StreamSource, 'goOn'> | undefined
  #target: StreamRoom | undefined
  /** What has left for the host of the response's body, and what has come of it at all and was not credited. */
  #sentBytes = 0
  #uncreditedBytes = 0
  #hasEnded = false
  #counted: FetchedBytes | undefined

  constructor(host: FetchingHost, whose: Holder, number: number) {
    this.#host = host
    this.#whose = whose
    this.#number = number
  }

  get functionName(): string {
    return this.#whose.functionName
  }

  // What the egress tells.

  readonly events: FetchEvents = {
    head: (text) => {
      this.hasHead = true
      if (!this.isStopped) this.#host.sayOfStream(this.#whose, { type: 'fetch-head', fetch: this.#number }, text)
    },
    data: ({ bytes, end }) => {
      if (this.isStopped) return
      this.#hasEnded = end === true
      this.#uncreditedBytes += bytes.length
      if (this.#target === undefined) this.#sentBytes += bytes.length
      else this.#target.write(bytes)
      if (this.#target !== undefined && end !== true) return
      const data: StreamData = { type: 'stream-data', of: 'fetch', number: this.#number, ...(end && { end }) }
      this.#host.sayOfStream(this.#whose, data, '', this.#target === undefined ? bytes : NO_BODY)
    },
    credit: (bytes) => {
      this.aheadBytes -= bytes
      if (this.isStopped) return
      if (this.#source !== undefined) return this.#source.goOn()
      this.#host.sayOfStream(this.#whose, { type: 'stream-credit', of: 'fetch', number: this.#number, bytes })
    },
    stopped: () => {
      if (this.isStopped) return
      this.#host.sayOfStream(this.#whose, { type: 'stream-abort', of: 'fetch', number: this.#number, side: 'received' })
    },
  }

  /** What went over for a fetch that the host did not wait for, without what that has counted. */
  unclaimedOf({ bytesOut, bytesIn }: FetchedBytes): FetchedBytes {
    const counted = this.#counted ?? { bytesOut: 0, bytesIn: 0 }
    return { bytesOut: Math.max(0, bytesOut - counted.bytesOut), bytesIn: Math.max(0, bytesIn - counted.bytesIn) }
  }

  // What the host says.

  /** The host waits for it no more. @param counted what it has counted of its bytes */
  stop(counted?: FetchedBytes): void {
    this.isStopped = true
    this.#counted = counted
    this.stream?.stop()
  }

  send(part: StreamPart): void {
    if (this.#source === undefined) return this.#send(part)
    // Of what is joined only the end comes from there, unless a guest is not what it should be.
    if (part.end === true) this.#send({ bytes: new Uint8Array(0), end: true })
  }

  credit(bytes: number): void {
    if (this.#target === undefined) this.#credit(bytes)
  }

  abort(side: StreamSide): void {
    this.stream?.abort(side)
  }

  // The response's body, where it passes the host by.

  hasSent(bytes: number): boolean {
    return this.#sentBytes === bytes && !this.#hasEnded && this.#target === undefined
  }

  passTo(target: StreamRoom): void {
    this.#target = target
    this.goOn()
  }

  /** As much may come as the target has room for. */
  goOn(): void {
    if (this.#target !== undefined) this.#credit(this.#uncreditedBytes - this.#target.aheadBytes)
  }

  // The request's body.

  get isJoinable(): boolean {
    return this.#source === undefined
  }

  joinWith(source: Pick<StreamSource, 'goOn'>): void {
    this.#source = source
  }

  write(bytes: Uint8Array): void {
    this.#send({ bytes: ownMemoryOf(bytes) })
  }

  #send(part: StreamPart): void {
    this.aheadBytes += part.bytes.length
    this.stream?.send(part)
  }

  #credit(bytes: number): void {
    const taken = Math.min(bytes, this.#uncreditedBytes)
    if (taken <= 0) return
    this.#uncreditedBytes -= taken
    this.stream?.credit(taken)
  }
}
