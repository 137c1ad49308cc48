import { SafePromise } from '../../language/primordials.ts'
import { type Channel, nextEntry } from '../host.ts'
import { StreamReading, type StreamSink } from '../stream-reading.ts'
import { type Body, channelToRelay, streamToRead } from './body.ts'

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

/** A body that is about to be sent. */
export interface Sending {
  /**
   * Sends it by a channel, on behalf of its invocation. Its source is told when nobody takes it any more.
   * @param failed called with what it fails with, which is for whoever opened the channel to deal with
   */
  by(channel: Channel, failed: (error: unknown) => void): void
  cancel(reason: unknown): void
}

/** Begins to send a body that is a stream. @throws TypeError if it was read already */
export function openBody(body: Body): Sending {
  const source = channelToRelay(body)
  if (source !== undefined) {
    return {
      by: (channel, failed) => source.relayTo(channel, failed),
      cancel: (reason) => source.stopReceiving('Nobody takes it.', reason),
    }
  }
  const reading = new StreamReading(streamToRead(body))
  return {
    by(channel, failed) {
      channel.onStopped = (error) => reading.cancel(error)
      void reading.into(new ChannelSink(channel, failed), () => nextEntry(channel.invocation))
    },
    cancel: (reason) => reading.cancel(reason),
  }
}
