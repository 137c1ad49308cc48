import { SafeTypeError, viewName } from '../primordials.ts'
import { encodeInto, encodeUtf8 } from './utf8.ts'
import { toText } from '../to-text.ts'

export class TextEncoder {
  get encoding(): string {
    return 'utf-8'
  }

  encode(input: unknown = ''): Uint8Array<ArrayBuffer> {
    return encodeUtf8(toText(input))
  }

  encodeInto(source: unknown, destination: Uint8Array): { read: number; written: number } {
    if (viewName(destination) !== 'Uint8Array') throw new SafeTypeError('encodeInto needs a Uint8Array to write to.')
    return encodeInto(toText(source), destination)
  }

  get [Symbol.toStringTag](): string {
    return 'TextEncoder'
  }
}
