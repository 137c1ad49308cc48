/** What the modules that nearly all others need take from large ones, for cases that hardly come up. */
import { slice } from './buffer-codecs.ts'
import { uv } from './small-parts.ts'

export const buffer = {
  Buffer: {
    from: (text: string) => new TextEncoder().encode(text),
    prototype: {
      hexSlice(this: Uint8Array, start?: number, end?: number) {
        return slice('hexSlice', this, start, end)
      },
    },
  },
}

export const util = { getSystemErrorName: (code: number) => uv.errname(code) }
export const vm = {}
