import { setTimeout as passes } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import t from 'tap'
import { isolateWith } from './support/isolate.ts'

setFlagsFromString('--allow-natives-syntax')

/** Of what V8 says of a function: it runs as code that either of its compilers has made. */
const OPTIMIZED = (1 << 4) | (1 << 5)
const FUNCTIONS = 20
/** V8 optimizes it within a few hundred entries. */
const MOST_ENTRIES = 2000

t.test('what V8 has compiled while no thread was in the isolate is put to use', async (t) => {
  const { run } = await isolateWith(t)
  await run(`globalThis.bytes = new Uint8Array(4096)
    globalThis.functions = Array.from({ length: ${FUNCTIONS} }, (_, n) => new Function('bytes', \`
      for (let index = 0; index < bytes.length; index++) bytes[index] ^= \${n}\`))`)
  for (let n = 0; n < FUNCTIONS; n++) {
    let status = 0
    let entries = 0
    for (; (status & OPTIMIZED) === 0 && entries < MOST_ENTRIES; entries++) {
      status = Number(await run(`functions[${n}](bytes); %GetOptimizationStatus(functions[${n}])`))
      // As between two calls: this is when it is compiled.
      await passes(1)
    }
    t.not(status & OPTIMIZED, 0, `function ${n} after ${entries} entries`)
  }
})
