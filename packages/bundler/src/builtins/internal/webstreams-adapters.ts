/** Streams of Node.js as those of the web, and back: over the global classes, which need nothing of Node.js. */
import { Buffer } from 'node:buffer'
import { Duplex, finished, Readable, Writable } from 'node:stream'

interface Options {
  readonly strategy?: QueuingStrategy
  readonly type?: 'bytes'
}

function invalid(name: string, type: string): Error {
  return Object.assign(new TypeError(`The "${name}" argument must be an instance of ${type}.`), { code: 'ERR_INVALID_ARG_TYPE' })
}

function newReadableStreamFromStreamReadable(readable: Readable, options: Options = {}): ReadableStream {
  if (typeof (readable as { read?: unknown } | null)?.read !== 'function') throw invalid('streamReadable', 'stream.Readable')
  const { readableObjectMode: isObjects, readableHighWaterMark } = readable
  const strategy = options.strategy ?? new CountQueuingStrategy({ highWaterMark: isObjects ? readableHighWaterMark : 1 })
  let controller: ReadableStreamDefaultController | undefined
  let isOver = false
  const end = (error?: Error | null): void => {
    if (isOver) return
    isOver = true
    if (error) controller?.error(error)
    else controller?.close()
  }
  readable.pause()
  const cleanUp = finished(readable, (error) => {
    cleanUp()
    readable.on('error', () => {})
    end(error)
  })
  readable.on('data', (chunk: unknown) => {
    if (isOver) return
    const isBytes = chunk instanceof Uint8Array && !isObjects
    controller?.enqueue(isBytes ? new Uint8Array(chunk) : chunk)
    if ((controller?.desiredSize ?? 0) <= 0) readable.pause()
  })
  return new ReadableStream(
    {
      start(given) {
        controller = given
      },
      pull() {
        readable.resume()
      },
      cancel(reason: unknown) {
        isOver = true
        readable.destroy(reason instanceof Error ? reason : undefined)
      },
    },
    strategy,
  )
}

type ReadableOptions = ConstructorParameters<typeof Readable>[0]

function newStreamReadableFromReadableStream(stream: ReadableStream, options: ReadableOptions = {}): Readable {
  if (typeof (stream as { getReader?: unknown } | null)?.getReader !== 'function')
    throw invalid('readableStream', 'ReadableStream')
  const reader = stream.getReader()
  let isClosed = false
  const readable = new Readable({
    ...options,
    read() {
      reader.read().then(
        ({ value, done }) => {
          if (done) isClosed = true
          this.push(done ? null : value)
        },
        (error: Error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      const finish = (): void => done(error)
      if (isClosed) finish()
      else reader.cancel(error ?? undefined).then(finish, finish)
    },
  })
  reader.closed.then(
    () => {
      isClosed = true
    },
    (error: Error) => {
      isClosed = true
      readable.destroy(error)
    },
  )
  return readable
}

function newWritableStreamFromStreamWritable(writable: Writable): WritableStream {
  if (typeof (writable as { write?: unknown } | null)?.write !== 'function') throw invalid('streamWritable', 'stream.Writable')
  const { writableHighWaterMark: highWaterMark, writableObjectMode: isObjects } = writable
  let drained: PromiseWithResolvers<void> | undefined
  let closed: PromiseWithResolvers<void> | undefined
  let controller: WritableStreamDefaultController | undefined
  writable.on('drain', () => drained?.resolve())
  const cleanUp = finished(writable, (error) => {
    cleanUp()
    writable.on('error', () => {})
    if (error) {
      drained?.reject(error)
      closed?.reject(error)
      controller?.error(error)
    } else {
      drained?.resolve()
      closed?.resolve()
      if (closed === undefined)
        controller?.error(Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' }))
    }
  })
  return new WritableStream(
    {
      start(given) {
        controller = given
      },
      async write(chunk: unknown) {
        if (!writable.writableNeedDrain && writable.write(chunk)) return
        drained = Promise.withResolvers()
        await drained.promise
        drained = undefined
      },
      abort(reason: unknown) {
        writable.destroy(reason instanceof Error ? reason : undefined)
      },
      async close() {
        if (writable.writableFinished) return
        closed = Promise.withResolvers()
        writable.end()
        await closed.promise
      },
    },
    new CountQueuingStrategy({ highWaterMark: isObjects ? highWaterMark : 1 }),
  )
}

type WritableOptions = ConstructorParameters<typeof Writable>[0]

function newStreamWritableFromWritableStream(stream: WritableStream, options: WritableOptions = {}): Writable {
  if (typeof (stream as { getWriter?: unknown } | null)?.getWriter !== 'function')
    throw invalid('writableStream', 'WritableStream')
  const writer = stream.getWriter()
  let isClosed = false
  const writable = new Writable({
    ...options,
    write(chunk: unknown, encoding, done) {
      const given =
        typeof chunk === 'string' && options.decodeStrings !== false && !options.objectMode ? Buffer.from(chunk, encoding) : chunk
      writer.ready.then(() => writer.write(given)).then(() => done(), done)
    },
    final(done) {
      const finish = (error?: Error): void => {
        isClosed = true
        done(error)
      }
      if (isClosed) done()
      else writer.close().then(() => finish(), finish)
    },
    destroy(error, done) {
      const finish = (): void => done(error)
      if (isClosed) finish()
      else (error === null ? writer.close() : writer.abort(error)).then(finish, finish)
    },
  })
  writer.closed.then(
    () => {
      isClosed = true
    },
    (error: Error) => {
      isClosed = true
      writable.destroy(error)
    },
  )
  return writable
}

function newReadableWritablePairFromDuplex(duplex: Duplex): { readable: ReadableStream; writable: WritableStream } {
  const writable = duplex.writable ? newWritableStreamFromStreamWritable(duplex) : new WritableStream()
  const readable = duplex.readable ? newReadableStreamFromStreamReadable(duplex) : new ReadableStream()
  return { writable, readable }
}

interface Pair {
  readonly readable: ReadableStream
  readonly writable: WritableStream
}

function newStreamDuplexFromReadableWritablePair(
  { readable, writable }: Pair,
  options: ConstructorParameters<typeof Duplex>[0] = {},
): Duplex {
  const source = newStreamReadableFromReadableStream(readable, options as ReadableOptions)
  const target = newStreamWritableFromWritableStream(writable, options as WritableOptions)
  const from = Duplex.from as unknown as (pair: { readable: Readable; writable: Writable }) => Duplex
  return from({ readable: source, writable: target })
}

export default {
  newReadableStreamFromStreamReadable,
  newReadableWritablePairFromDuplex,
  newStreamDuplexFromReadableWritablePair,
  newStreamReadableFromReadableStream,
  newStreamWritableFromWritableStream,
  newWritableStreamFromStreamWritable,
}
