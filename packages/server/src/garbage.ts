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
 * Has V8 look at memory outside of its heap together with the heap. Else it goes through the whole heap whenever 64 MiB of
 * buffers were made, which bodies that stream do many times a second, and find nothing but buffers. For a process of our own.
 */
export function countBuffersWithHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
}
