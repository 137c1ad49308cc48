import { refuse } from './refuse.ts'
import { nodeModuleOf } from './runtime-module.ts'

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
const ARCHIVES = [
  'createZipArchive',
  'createZipArchiveSync',
  'getMaxZipContentSize',
  'setMaxZipContentSize',
  'ZipBuffer',
  'ZipEntry',
  'ZipFile',
  'zipFiles',
]

/** `node:zlib` in a function. */
export default {
  ...(nodeModuleOf('zlib') as object),
  // Packages name them when they are loaded.
  ...refuse('zlib', 'it has no Zstandard; use brotli or gzip', ZSTD),
  ...refuse('zlib', 'it has no archives', ARCHIVES),
}
