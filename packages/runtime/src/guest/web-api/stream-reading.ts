import { SafePromise, SafeTypeError, typedArrayLength, viewName } from '../language/primordials.ts'
import { ByteList } from './byte-list.ts'
import { maxBodyBytes, tooLongText } from './host.ts'
import { cancelBy, type ReadableStream, type StreamReader } from './streams.ts'

/** Takes what a stream gives, chunk by chunk. */
export interface StreamSink {
  /** The chunk is the stream's: it may change or be detached later. What this throws cancels the stream, and fails the sink. */
  write(chunk: Uint8Array): void
  /** Resolves when the sink takes more; undefined if it does at once. Default: it always does. */
  room?(): Promise<void> | undefined
  /** The stream has ended. */
  close(): void
  /** The stream has failed, or gave what is no bytes. */
  fail(error: unknown): void
}

/** Reads of one entry: a stream that is always ready would keep the isolate from all others, and from its own end. */
const READS_PER_ENTRY = 256

/** The reading of a stream, to its end or until it is canceled. */
export class StreamReading {
  readonly #stream: ReadableStream<Uint8Array>
  readonly #reader: StreamReader
  #state: 'reading' | 'ended' | 'canceled' = 'reading'

  /** @throws TypeError if another reads the stream */
  constructor(stream: ReadableStream<Uint8Array>) {
    this.#stream = stream
    this.#reader = stream.getReader()
  }

  /** Never rejects. @param pause resolves in the next entry; default: all is read as it comes */
  async into(sink: StreamSink, pause?: () => Promise<void>): Promise<void> {
    try {
      for (let reads = 1; ; reads++) {
        const { done, value } = await this.#reader.read()
        if (this.#state !== 'reading') return
        if (done) break
        if (viewName(value) !== 'Uint8Array') throw new SafeTypeError('A body stream must give chunks of type Uint8Array.')
        sink.write(value)
        const room = sink.room?.() ?? (reads % READS_PER_ENTRY === 0 ? pause?.() : undefined)
        if (room === undefined) continue
        await room
        if (this.#state !== 'reading') return
      }
      this.#state = 'ended'
      sink.close()
    } catch (error) {
      if (this.#state === 'canceled') return
      this.cancel(error)
      sink.fail(error)
    }
  }

  /** Stops: the source is told, and the sink hears no more. Without effect if the stream has ended. */
  cancel(reason: unknown): void {
    if (this.#state !== 'reading') return
    this.#state = 'canceled'
    void cancelBy(this.#reader, this.#stream, reason)
  }
}

/**
 * Reads a stream to its end. Rejects with what the stream fails with, or with a TypeError if a chunk is not of bytes.
 * @param what of which it is the body, which then may have no more bytes than the limit
 */
export function readAll(stream: ReadableStream<Uint8Array>, what?: 'request' | 'response'): Promise<Uint8Array<ArrayBuffer>> {
  return new SafePromise((resolve, reject) => {
    const bytes = new ByteList()
    void new StreamReading(stream).into({
      write(chunk) {
        const length = bytes.length + typedArrayLength(chunk)
        if (what !== undefined && length > maxBodyBytes) throw new SafeTypeError(tooLongText(what, length))
        bytes.append(chunk)
      },
      close: () => resolve(bytes.bytes()),
      fail: reject,
    })
  })
}
