/** `node:stream/web` in a function: the globals. */
import { refuse } from './refuse.ts'

const NAMES = [
  'ReadableStream',
  'ReadableStreamDefaultReader',
  'ReadableStreamBYOBReader',
  'ReadableStreamBYOBRequest',
  'ReadableByteStreamController',
  'ReadableStreamDefaultController',
  'TransformStream',
  'TransformStreamDefaultController',
  'WritableStream',
  'WritableStreamDefaultWriter',
  'WritableStreamDefaultController',
  'ByteLengthQueuingStrategy',
  'CountQueuingStrategy',
  'TextEncoderStream',
  'TextDecoderStream',
  'CompressionStream',
  'DecompressionStream',
] as const

const classes: Record<string, unknown> = refuse('stream/web', 'the runtime has none', ['ReadableStreamTee'])
for (const name of NAMES) {
  // Made when they are first read, as the globals are.
  Object.defineProperty(classes, name, {
    get: () => (globalThis as Record<string, unknown>)[name],
    enumerable: true,
    configurable: true,
  })
}

export default classes
