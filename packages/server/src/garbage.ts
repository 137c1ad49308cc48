import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How often it is looked whether the server is at rest, in ms. */
const LOOK_MS = 5_000
/** Of its event loop's time since the last look, what a server at rest may have used: monitors ask it now and then. */
const MAX_UTILIZATION = 0.05
/** The heap must have grown by so much, in bytes: calls that come now and then are not to pay for a collection each. */
const WORTH_BYTES = 32 * 2 ** 20

/**
 * Collects all garbage now, and gives the memory back to the system: it takes some 50 ms. V8 would leave what only the start
 * needed, about 50 MB, until the heap is full for the first time.
 */
export function collectGarbage(): void {
  const isExposed = 'gc' in globalThis
  setFlagsFromString('--expose-gc')
  const { gc } = runInNewContext('globalThis') as { gc?: (options: { type: 'major'; flavor: 'last-resort' }) => void }
  if (!isExposed) setFlagsFromString('--no-expose-gc')
  gc?.({ type: 'major', flavor: 'last-resort' })
}

/**
 * Collects garbage whenever the server has come to rest with a heap that grew meanwhile. V8 does so by itself only where next to
 * nothing is allocated for a while: whoever reads the status twice a second puts it off for good.
 * @param lookMs how often it is looked
 * @returns what ends that
 */
export function collectGarbageAtRest(lookMs: number = LOOK_MS): () => void {
  let collectedBytes = getHeapStatistics().total_heap_size
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    const heapBytes = getHeapStatistics().total_heap_size
    collectedBytes = Math.min(collectedBytes, heapBytes)
    if (utilization > MAX_UTILIZATION || heapBytes < collectedBytes + WORTH_BYTES) return
    collectGarbage()
    collectedBytes = getHeapStatistics().total_heap_size
  }, lookMs).unref()
  return () => clearInterval(timer)
}

/**
 * Has V8 count memory outside of its heap toward the size at which it collects the whole heap. Otherwise it does so for each
 * 64 MiB of new buffers, which bodies that stream fill many times a second, and frees nothing but those buffers. For a process
 * of our own.
 */
export function countBuffersWithHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
}
