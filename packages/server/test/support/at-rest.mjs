/** Fills its heap with garbage, and comes to rest; says how large the heap is before that, then and once it was collected. */
import { getHeapStatistics } from 'node:v8'
import { collectGarbageAtRest } from '../../src/garbage.ts'

const heapMb = () => getHeapStatistics().total_heap_size / 2 ** 20
// As a monitor that asks for the status.
setInterval(() => JSON.stringify(process.memoryUsage()), 500)
const before = heapMb()
collectGarbageAtRest(1_000)
let kept = Array.from({ length: 1_000_000 }, (_, index) => ({ index }))
const filled = heapMb()
kept = undefined
const waiting = setInterval(() => {
  if (heapMb() > before + 32) return
  clearInterval(waiting)
  console.log(JSON.stringify({ before, filled, collected: heapMb(), kept }))
  process.exit(0)
}, 500)
