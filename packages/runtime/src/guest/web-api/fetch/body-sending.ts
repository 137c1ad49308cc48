import { SafePromise } from '../../language/primordials.ts'
import { type Channel, nextEntry } from '../host.ts'
import { StreamReading, type StreamSink } from '../stream-reading.ts'
import { type Body, streamToRead } from './body.ts'

/** Sends what a stream gives by a channel, as fast as that takes it. */
class ChannelSink implements StreamSink {
  readonly #channel: Channel
  readonly #failed: (error: unknown) => void

  constructor(channel: Channel, failed: (error: unknown) => void) {
    this.#channel = channel
    this.#failed = failed
  }

  write(chunk: Uint8Array): void {
    this.#channel.send(chunk)
  }

  room(): Promise<void> | undefined {
    if (!this.#channel.isFull) return undefined
    return new SafePromise((resolve) => {
      this.#channel.onRoom = resolve
    })
  }

  close(): void {
    this.#channel.end()
  }

  fail(error: unknown): void {
    this.#failed(error)
  }
}

/** Begins to read the stream of a body that leaves. @throws TypeError if it was read already */
export function openBody(body: Body): StreamReading {
  return new StreamReading(streamToRead(body))
}

/**
 * Sends what is read by a channel, on behalf of its invocation. The stream is canceled when nobody takes it any more.
 * @param failed called with what the stream fails with, which is for whoever opened the channel to deal with
 */
export function sendBody(reading: StreamReading, channel: Channel, failed: (error: unknown) => void): void {
  channel.onStopped = (error) => reading.cancel(error)
  void reading.into(new ChannelSink(channel, failed), () => nextEntry(channel.invocation))
}
