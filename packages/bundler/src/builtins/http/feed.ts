import { Buffer } from 'node:buffer'
import type EventEmitter from 'node:events'

/** A message that a body comes in by, as far as it has to do with that. */
export interface Fed {
  complete: boolean
  readonly destroyed: boolean
  _read(size: number): void
  push(chunk: unknown): boolean
  destroy(error?: Error): void
}

/**
 * Gives a message what comes of a body, as fast as it is read.
 * @returns gives it no more, whoever still reads
 */
export function feed(message: Fed & EventEmitter, body: ReadableStream<Uint8Array>): () => void {
  const reader = body.getReader()
  const read = message._read
  let [isReading, isWanted, isOver] = [false, false, false]
  const stop = (): void => {
    if (isOver) return
    isOver = true
    reader.cancel().catch(() => {})
  }
  const pull = async (): Promise<void> => {
    if (isReading || isOver) return
    isReading = true
    try {
      while (isWanted) {
        const { done, value } = await reader.read()
        if (isOver) return
        if (done) {
          isOver = true
          return complete(message)
        }
        // It may ask for the next before it has taken this one.
        isWanted = false
        if (message.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength))) isWanted = true
      }
    } catch (error) {
      if (isOver) return
      isOver = true
      message.destroy(Object.assign(new Error('aborted', { cause: error }), { code: 'ECONNRESET' }))
    }
    isReading = false
  }
  message._read = function (this: Fed, size) {
    read.call(this, size)
    isWanted = true
    void pull()
  }
  message.once('close', stop)
  return stop
}

/** Nothing comes any more: it is whole. */
export function complete(message: Fed): void {
  message.complete = true
  message.push(null)
}
