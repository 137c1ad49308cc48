import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

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
 * Has V8 count memory outside of its heap toward the size at which it collects the whole heap. Otherwise it does so for each
 * 64 MiB of new buffers, which bodies that stream fill many times a second, and frees nothing but those buffers. For a process
 * of our own.
 */
export function countBuffersWithHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
}
