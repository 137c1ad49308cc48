/** Longest time between the beginnings of two batches while records wait, in ms. */
export const HOLD_MS = 1
/** Rate from which on records are held back for each other. */
const HELD_ROWS_PER_MS = 3

/**
 * Whether to hold records back until {@link HOLD_MS} after the last batch began. A transaction costs as much as twenty rows, so when
 * calls come quickly, rows are worth gathering; with few calls there is nothing to save, and each is written at once.
 * @param rows those of the last `elapsedMs`
 */
export function isHoldWorthwhile(rows: number, elapsedMs: number): boolean {
  return rows >= HELD_ROWS_PER_MS * elapsedMs
}
