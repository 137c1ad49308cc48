/**
 * The part `compression`: the classes of the Compression standard, and what `node:zlib` is made of. It is loaded when a function
 * first touches either; what the part `crypto` says of itself holds here too.
 */
import { connectNatives, type Natives } from './natives.ts'
import { makeNodeModule } from './node/index.ts'
import { CompressionStream, connectRuntime, DecompressionStream, type Runtime } from './streams.ts'

export function create(natives: Natives): (runtime: Runtime) => object {
  connectNatives(natives)
  return (runtime) => {
    connectRuntime(runtime)
    return { CompressionStream, DecompressionStream, node: makeNodeModule }
  }
}
