/**
 * Makes so many GiB of new buffers, by default 4, beside a heap of so many MiB, and says what V8 did about it:
 * `new-buffers.mjs <counted|plain> <MiB> [<GiB>]`.
 */
import { PerformanceObserver } from 'node:perf_hooks'
import { countBuffersWithHeap } from '../../src/garbage.ts'

const [, , way, heapMb, buffersGb = '4'] = process.argv
if (way === 'counted') countBuffersWithHeap()

// About 125 bytes each.
globalThis.kept = Array.from({ length: Number(heapMb) * 8_400 }, (_, index) => ({ index, text: String(index), list: [index] }))
let majors = 0
new PerformanceObserver((list) => {
  for (const { detail } of list.getEntries()) if (detail.kind === 4) majors++
}).observe({ entryTypes: ['gc'] })

const before = process.cpuUsage()
let peakBytes = 0
for (let turn = 0; turn < 100 * Number(buffersGb); turn++) {
  for (let index = 0; index < 160; index++) globalThis.last = new Uint8Array(65_536)
  await new Promise(setImmediate)
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss())
}
const { user, system } = process.cpuUsage(before)
const heapMbNow = Math.round(process.memoryUsage().heapUsed / 2 ** 20)
console.log(
  JSON.stringify({
    majors,
    heapMb: heapMbNow,
    cpuMs: Math.round((user + system) / 1_000),
    peakMb: Math.round(peakBytes / 2 ** 20),
  }),
)
