import type { Bytes } from '../node/bytes.ts'
import { streams } from '../../web-api/streams.ts'

/** What comes of a chunk, or of the end without one, piece by piece, each made when it is asked for. */
type Make = (chunk: { readonly value: unknown } | undefined) => Iterator<Bytes, void>

interface Sink {
  enqueue(piece: Bytes): void
}

/**
 * A pair of streams of which the second gives pieces as they are read. A `TransformStream` alone takes all at once that comes
 * of a chunk, which may be a thousand times as much; in front of its readable half stands one that tells when somebody reads.
 */
export function pacedPair(make: Make): { readonly readable: object; readonly writable: object } {
  const { ReadableStream, TransformStream } = streams()
  let isWanted = false
  let isOver = false
  let goOn: (() => void) | undefined

  const give = async (pieces: Iterator<Bytes, void>, sink: Sink): Promise<void> => {
    // One piece ahead of the reader, or a write would end only with the read after the one that takes all of it.
    for (let next = pieces.next(), isFirst = true; next.done !== true; next = pieces.next(), isFirst = false) {
      if (!isFirst && !isWanted) await new Promise<void>((resolve) => (goOn = resolve))
      if (isOver) return
      isWanted = false
      sink.enqueue(next.value)
    }
  }
  const { readable, writable } = new TransformStream<unknown, Bytes>({
    transform: (value, sink) => give(make({ value }), sink),
    flush: (sink) => give(make(undefined), sink),
  })
  const reader = readable.getReader()
  const want = (): void => {
    isWanted = true
    goOn?.()
    goOn = undefined
  }
  let isReading = false
  let hasEnded = false
  const paced = new ReadableStream<Bytes>(
    {
      start(controller) {
        const end = (): void => {
          hasEnded = true
          // It closes before the read that took its last piece is through.
          if (!isReading && !isOver) controller.close()
        }
        void reader.closed.then(end, (error: unknown) => controller.error(error))
      },
      async pull(controller) {
        isReading = true
        want()
        const { done, value } = await reader.read()
        isReading = false
        if (isOver) return
        if (!done) controller.enqueue(value)
        if (done || hasEnded) {
          isOver = true
          controller.close()
        }
      },
      cancel(reason) {
        isOver = true
        want()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  return { readable: paced, writable }
}
