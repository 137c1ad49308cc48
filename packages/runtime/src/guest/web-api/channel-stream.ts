/** What comes by a channel, as the web has it. */
import { SafePromise, SafeTypeError, SafeWeakMap, typedArrayLength } from '../language/primordials.ts'
import { ByteList } from './byte-list.ts'
import { ByteQueue, type Channel, maxBodyBytes, tooLongText } from './host.ts'
import { type ReadableStream, streams } from './streams.ts'

type Controller = import('web-streams-polyfill').ReadableByteStreamController

interface UnderlyingSource {
  readonly __proto__: null
  readonly type: 'bytes'
  pull(controller: Controller): void
  cancel(reason: unknown): void
}

const channelOf = new SafeWeakMap<object, Channel>()

/** The channel of a stream that {@link streamOfChannel} has made. */
export function channelOfStream(stream: ReadableStream<Uint8Array>): Channel | undefined {
  return channelOf.get(stream)
}

/** A stream of what comes. Nothing is taken before it is read; what is read together comes as one chunk. */
export function streamOfChannel(channel: Channel): ReadableStream<Uint8Array> {
  // Small parts that nobody reads must not take many times their size.
  const waiting = new ByteQueue()
  let controller: Controller | undefined
  let isWanted = false
  let hasEnded = false
  const give = (bytes: Uint8Array<ArrayBuffer>): void => {
    isWanted = false
    channel.credit(typedArrayLength(bytes))
    controller!.enqueue(bytes)
    if (hasEnded) close()
  }
  const close = (): void => {
    controller!.close()
    // What a reader with a buffer of its own still waits for.
    controller!.byobRequest?.respond(0)
  }
  const source: UnderlyingSource = {
    __proto__: null,
    type: 'bytes',
    pull(given) {
      isWanted = true
      if (controller === undefined) {
        controller = given
        channel.receive({
          data(bytes) {
            if (isWanted) give(bytes)
            else waiting.append(bytes)
          },
          ended() {
            hasEnded = true
            if (waiting.length === 0) close()
          },
          failed: (error) => controller!.error(error),
        })
      } else if (waiting.length > 0) give(waiting.takeAll())
    },
    cancel: (reason) => channel.stopReceiving('Nobody reads it.', reason),
  }
  const stream = new (streams().ReadableStream)<Uint8Array>(source)
  channelOf.set(stream, channel)
  return stream
}

/** All that comes, up to the limit of a body. Rejects with what it breaks off with, or with a TypeError that names the limit. */
export function collectChannel(channel: Channel): Promise<Uint8Array<ArrayBuffer>> {
  return new SafePromise((resolve, reject) => {
    const collected = new ByteList()
    channel.receive({
      data(bytes) {
        const length = typedArrayLength(bytes)
        if (collected.length + length > maxBodyBytes) {
          const error = new SafeTypeError(tooLongText(channel.what, collected.length + length))
          channel.stopReceiving(error.message, error)
          return reject(error)
        }
        channel.credit(length)
        collected.append(bytes)
      },
      ended: () => resolve(collected.bytes()),
      failed: reject,
    })
  })
}
