import { SLOT_LENGTH } from './slots.ts'

/** Slots of the ring: several of the largest batches. What finds it full waits in the memory of the main thread. */
export const RING_SLOTS = 4096

/**
 * The words by which the two threads agree. The counts wrap around at 2^32; only their differences mean anything, and those are no larger
 * than the ring.
 */
export const WORD = {
  /** Slots filled. Written by the main thread. */
  published: 0,
  /** Slots of the batches begun, and of those committed. Written by the ledger's thread. */
  taken: 1,
  committed: 2,
  /** Changes with everything that the ledger's thread may have to wake up for. */
  signal: 3,
  /** Messages posted to the ledger's thread. */
  mail: 4,
  /** 1 while the ledger's thread sleeps until a signal. */
  idle: 5,
  /** 1 while a message is under way that tells the main thread of a commit. */
  told: 6,
  closing: 7,
  /** Changes when the next batch is not to be held back. */
  hurry: 8,
} as const

/** Shared by the main thread, which fills slots in order, and the ledger's thread, which empties them. */
export interface Ring {
  readonly words: Int32Array
  readonly slots: Float64Array
  /** The slots by bytes and by 32 bits, for ids. */
  readonly bytes: Uint8Array
  readonly quads: Uint32Array
}

export interface RingMemory {
  readonly words: SharedArrayBuffer
  readonly slots: SharedArrayBuffer
}

export function createRingMemory(): RingMemory {
  return {
    words: new SharedArrayBuffer(Object.keys(WORD).length * 4),
    slots: new SharedArrayBuffer(RING_SLOTS * SLOT_LENGTH * 8),
  }
}

export function ringOf({ words, slots }: RingMemory): Ring {
  return {
    words: new Int32Array(words),
    slots: new Float64Array(slots),
    bytes: new Uint8Array(slots),
    quads: new Uint32Array(slots),
  }
}

/** Where the slot of a count begins. */
export function slotBase(count: number): number {
  return (count & (RING_SLOTS - 1)) * SLOT_LENGTH
}

/** How far one count is ahead of another. */
export function ahead(count: number, behind: number): number {
  return (count - behind) | 0
}

/** Wakes the ledger's thread if it sleeps. */
export function signal({ words }: Ring): void {
  Atomics.add(words, WORD.signal, 1)
  if (Atomics.load(words, WORD.idle) === 1) Atomics.notify(words, WORD.signal)
}
