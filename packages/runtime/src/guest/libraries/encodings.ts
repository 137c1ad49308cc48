/** The legacy encodings of the Encoding standard, from @exodus/bytes. */
import { normalizeEncoding } from '@exodus/bytes/encoding-lite.js'
import { createMultibyteDecoder } from '@exodus/bytes/multi-byte.js'
import { createSinglebyteDecoder } from '@exodus/bytes/single-byte.js'

export { normalizeEncoding }

const MULTI_BYTE = new Set(['big5', 'euc-kr', 'euc-jp', 'iso-2022-jp', 'shift_jis', 'gbk', 'gb18030'])
const NOTHING = new Uint8Array(0)

export function makeLegacyDecoder(encoding: string, fatal: boolean): { decode(bytes: Uint8Array): string; flush(): string } {
  if (!MULTI_BYTE.has(encoding)) {
    const decode = createSinglebyteDecoder(encoding, !fatal)
    return { decode, flush: () => '' }
  }
  const decode = createMultibyteDecoder(encoding, !fatal)
  return { decode: (bytes) => (bytes.length === 0 ? '' : decode(bytes, true)), flush: () => decode(NOTHING, false) }
}
