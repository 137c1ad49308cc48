const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 5000

/** How long to wait before a thread is started again that ended `failures` times in a row without doing its work, in ms. */
export function restartDelayMs(failures: number): number {
  return failures <= 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS)
}
