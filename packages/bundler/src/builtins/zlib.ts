import { refuse } from './refuse.ts'
import { nodeModuleOf } from './runtime-part.ts'

/** The types of Node.js do not have `codes`. */
type Zlib = typeof import('node:zlib') & { readonly codes: Readonly<Record<string, number | string>> }

const ZSTD = [
  'createZstdCompress',
  'createZstdDecompress',
  'ZstdCompress',
  'zstdCompress',
  'zstdCompressSync',
  'ZstdDecompress',
  'zstdDecompress',
  'zstdDecompressSync',
]
const zlib = {
  ...(nodeModuleOf('compression') as Zlib),
  // Packages name them when they are loaded.
  ...refuse('zlib', 'it has no Zstandard; use brotli or gzip', ZSTD),
}

/** `node:zlib` in a function. */
export const {
  BrotliCompress,
  brotliCompress,
  brotliCompressSync,
  BrotliDecompress,
  brotliDecompress,
  brotliDecompressSync,
  codes,
  constants,
  crc32,
  createBrotliCompress,
  createBrotliDecompress,
  createDeflate,
  createDeflateRaw,
  createGunzip,
  createGzip,
  createInflate,
  createInflateRaw,
  createUnzip,
  createZstdCompress,
  createZstdDecompress,
  Deflate,
  deflate,
  DeflateRaw,
  deflateRaw,
  deflateRawSync,
  deflateSync,
  Gunzip,
  gunzip,
  gunzipSync,
  Gzip,
  gzip,
  gzipSync,
  Inflate,
  inflate,
  InflateRaw,
  inflateRaw,
  inflateRawSync,
  inflateSync,
  Unzip,
  unzip,
  unzipSync,
  ZstdCompress,
  zstdCompress,
  zstdCompressSync,
  ZstdDecompress,
  zstdDecompress,
  zstdDecompressSync,
} = zlib
export default zlib
