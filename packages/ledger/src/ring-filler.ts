import type { RevisionDictionary } from './revision-dictionary.ts'
import { ahead, RING_SLOTS, ringOf, signal, slotBase, WORD, type Ring, type RingMemory } from './ring.ts'
import { encodeBackground, encodeInvocation, SLOT } from './slots.ts'
import { isInvocation, type Entry } from './write-queue.ts'

/** The main thread's end of a ring. Entries go in by their sequence, without a gap. */
export class RingFiller {
  readonly #ring: Ring
  readonly #dictionary: RevisionDictionary
  #nextSequence: number
  #committedSequence: number
  #committed = 0
  #published = 0
  #taken = 0

  /** @param firstSequence the one that the first slot is for */
  constructor(memory: RingMemory, firstSequence: number, dictionary: RevisionDictionary) {
    this.#ring = ringOf(memory)
    this.#nextSequence = firstSequence
    this.#committedSequence = firstSequence - 1
    this.#dictionary = dictionary
  }

  /** The sequence that the next slot is for. */
  get nextSequence(): number {
    return this.#nextSequence
  }

  get hasRoom(): boolean {
    return ahead(this.#published, Atomics.load(this.#ring.words, WORD.committed)) < RING_SLOTS
  }

  /** Whether a batch was begun since the last time this was asked. */
  isBatchBegun(): boolean {
    const taken = Atomics.load(this.#ring.words, WORD.taken)
    if (taken === this.#taken) return false
    this.#taken = taken
    return true
  }

  /** Fills the next slot. There must be room. Gives false if the entry cannot be written; then nothing has changed. */
  put(entry: Entry, instanceUs: number): boolean {
    const { slots, bytes, words } = this.#ring
    const base = slotBase(this.#published)
    if (isInvocation(entry)) {
      if (!encodeInvocation(slots, bytes, base, entry, instanceUs)) return false
      slots[base + SLOT.revisionKey] = this.#dictionary.keyOf(entry)
    } else {
      encodeBackground(slots, base, entry)
      slots[base + SLOT.revisionKey] = this.#dictionary.keyOfBackground(entry)
    }
    slots[base + SLOT.sequence] = this.#nextSequence
    this.#nextSequence += 1
    this.#published = (this.#published + 1) | 0
    Atomics.store(words, WORD.published, this.#published)
    signal(this.#ring)
    return true
  }

  /** The last sequence that is committed. To be asked when the thread has told of a commit, which it does once until then. */
  committedSequence(): number {
    const { words } = this.#ring
    // Before the count is read: a commit after that is told of again.
    Atomics.store(words, WORD.told, 0)
    const committed = Atomics.load(words, WORD.committed)
    this.#committedSequence += ahead(committed, this.#committed)
    this.#committed = committed
    return this.#committedSequence
  }

  /** Lets the next batch begin without waiting for more. */
  hurry(): void {
    Atomics.add(this.#ring.words, WORD.hurry, 1)
    Atomics.notify(this.#ring.words, WORD.hurry)
  }

  /** After a message was posted to the thread. */
  announceMail(): void {
    Atomics.add(this.#ring.words, WORD.mail, 1)
    signal(this.#ring)
  }

  /** Lets the thread end once it has written everything. */
  close(): void {
    Atomics.store(this.#ring.words, WORD.closing, 1)
    Atomics.notify(this.#ring.words, WORD.closing)
    this.hurry()
    signal(this.#ring)
  }
}
