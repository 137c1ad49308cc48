/** The classes of the Compression standard, and what `node:zlib` is made of, by native functions. */
import { CompressionStream, DecompressionStream } from './compression/streams.ts'
import { asInterfaces } from './interfaces.ts'

export { makeNodeModule } from './compression/node/index.ts'
export { CompressionStream, DecompressionStream }

asInterfaces({ CompressionStream, DecompressionStream })
