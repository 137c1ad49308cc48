import { SafeTypeError, typedArrayLength } from '../../language/primordials.ts'
import { ByteList } from '../byte-list.ts'
import { latin1FromBytes } from '../encoding.ts'
import { maxBodyBytes, nextEntry, tooLongText } from '../host.ts'
import { StreamReading, type StreamSink } from '../stream-reading.ts'
import { type Body, streamToRead } from './body.ts'

/** What becomes of the stream of a body that leaves. One of these is called, unless it is canceled. */
export interface Collected {
  /** It has ended: the bytes as the bridge carries them. */
  whole(text: string): void
  /** It gave more bytes than may leave, and was canceled. */
  tooLong(message: string): void
  /** It failed, gave what is no bytes, or was read already. */
  failed(error: unknown): void
}

/** A body that is being collected; canceling it cancels its stream. */
export type Collecting = Pick<StreamReading, 'cancel'>

/** Collects what a stream gives. The place of a sink that sends each chunk as it comes. */
class BodyCollector implements StreamSink {
  readonly #what: 'request' | 'response'
  readonly #collected: Collected
  readonly #bytes = new ByteList()
  #tooLong: string | undefined

  constructor(what: 'request' | 'response', collected: Collected) {
    this.#what = what
    this.#collected = collected
  }

  write(chunk: Uint8Array): void {
    const bytes = this.#bytes.length + typedArrayLength(chunk)
    if (bytes > maxBodyBytes) {
      this.#tooLong = tooLongText(this.#what, bytes)
      throw new SafeTypeError(this.#tooLong)
    }
    this.#bytes.append(chunk)
  }

  close(): void {
    let text = ''
    this.#bytes.each((part) => {
      text += latin1FromBytes(part)
    })
    this.#collected.whole(text)
  }

  fail(error: unknown): void {
    if (this.#tooLong === undefined) this.#collected.failed(error)
    else this.#collected.tooLong(this.#tooLong)
  }
}

/** Collects the stream of a body that leaves, on behalf of an invocation. */
export function collectBody(what: 'request' | 'response', body: Body, invocation: number, collected: Collected): Collecting {
  const reading = new StreamReading(streamToRead(body))
  void reading.into(new BodyCollector(what, collected), () => nextEntry(invocation))
  return reading
}
