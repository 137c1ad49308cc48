import { SafeTypeError } from '../language/primordials.ts'
import { markPlatformClass } from './brands.ts'
import { randomUuid } from './crypto.ts'
import { DOMException } from './dom-exception.ts'
import { decodeUtf8, encodeUtf8 } from './encoding.ts'
import { loadPart } from './host.ts'
import { streams } from './streams.ts'

/** What a part makes for a context. */
type Made = Readonly<Record<string, unknown>>
type Part = (runtime: object) => Made

let crypto: Made | undefined
let compression: Made | undefined

/** `crypto.subtle` and its classes, and `node`, what `node:crypto` is made of. */
export function cryptoPart(): Made {
  if (crypto === undefined) {
    crypto = load('crypto')({ __proto__: null, DOMException, decodeUtf8, encodeUtf8, randomUuid })
    markPlatformClass('CryptoKey', crypto['CryptoKey'] as { prototype: object })
    markPlatformClass('SubtleCrypto', crypto['SubtleCrypto'] as { prototype: object })
  }
  return crypto
}

/** The classes of the Compression standard, and `node`, what `node:zlib` is made of. */
export function compressionPart(): Made {
  if (compression === undefined) {
    compression = load('compression')({ __proto__: null, streams })
    markPlatformClass('CompressionStream', compression['CompressionStream'] as { prototype: object })
    markPlatformClass('DecompressionStream', compression['DecompressionStream'] as { prototype: object })
  }
  return compression
}

function load(name: 'crypto' | 'compression'): Part {
  const part = loadPart(name)
  if (typeof part !== 'function') throw new SafeTypeError(`The host has no part '${name}' of the runtime.`)
  return part as Part
}
