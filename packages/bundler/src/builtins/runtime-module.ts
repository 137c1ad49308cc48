import { Buffer } from './buffer-global.ts'
import { support } from './support.ts'

declare const require: (name: string) => unknown

const environment = {
  Buffer,
  decoder(encoding: string): unknown {
    const { StringDecoder } = require('node:string_decoder') as { StringDecoder: new (encoding: string) => unknown }
    return new StringDecoder(encoding)
  },
  stream() {
    try {
      return require('node:stream')
    } catch (cause) {
      throw new Error('node:stream, which this is used as, cannot be loaded.', { cause })
    }
  },
}

/**
 * A built-in module that is a library of the host's runtime, with native functions: loaded when the function first imports it,
 * and not in its bundle. It uses the `Buffer` and the streams that are.
 */
export function nodeModuleOf(name: 'crypto' | 'zlib'): unknown {
  return support.module(name, environment)
}
