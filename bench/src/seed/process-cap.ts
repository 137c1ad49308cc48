/** What one process of the seed function takes at its peak, with room to spare: Node's own 45 MB and the array while it grows. */
const BYTES_PER_PROCESS = 160e6
/** The rest is for whoever else is on the machine. */
const USABLE_SHARE = 0.7

/** How many processes of the seed function fit into the memory that is free: at least one. */
export function defaultProcessCap(availableBytes: number): number {
  return Math.max(1, Math.floor((availableBytes * USABLE_SHARE) / BYTES_PER_PROCESS))
}
