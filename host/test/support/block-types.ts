/** Decompresses brotli with each number of block types that is in question, and says so when it has. */
import { isolateWithNatives } from './natives.ts'

const { isolate, context } = isolateWithNatives()
context.evalSync(`(() => {
  for (let types = 90; types <= 140; types++) {
    const bits = []
    const put = (value, count) => { for (let i = 0; i < count; i++) bits.push((value >> i) & 1) }
    const log = Math.floor(Math.log2(types - 1))
    put(0, 1) // WBITS
    put(1, 2) // ISLAST, not empty
    put(0, 18) // MLEN
    put(1, 1); put(log, 3); put(types - 1 - 2 ** log, log) // NBLTYPESL
    put(1, 2); put(0, 2); put(0, Math.floor(Math.log2(types + 1)) + 1) // block types: one symbol
    put(1, 2); put(0, 2); put(0, 5) // block counts: one symbol
    put(0, 2) // the first count
    put(0, 2) // NBLTYPESI, NBLTYPESD
    put(0, 6) // NPOSTFIX, NDIRECT
    for (let i = 0; i < types; i++) put(3, 2) // context modes, a byte of memory for each
    put(0, 4)
    const bytes = new Uint8Array(Math.ceil(bits.length / 8))
    bits.forEach((bit, i) => { bytes[i >> 3] |= bit << (i & 7) })
    const output = new Uint8Array(1000)
    for (let round = 0; round < 20; round++) {
      natives.brotliRun(natives.brotliNew(false, new Uint32Array(0)), bytes, 0, bytes.length - 1, output, 0, 0)
    }
  }
})()`)
isolate.dispose()
console.log('decompressed')
