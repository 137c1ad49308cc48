import type { BackgroundUsage, InvocationRecord } from '@carpool/core'

export type Entry = InvocationRecord | BackgroundUsage

export function isInvocation(entry: Entry): entry is InvocationRecord {
  return !('atMs' in entry)
}

/** Entries that are waited for together. */
interface Group {
  readonly firstSequence: number
  readonly startedMs: number
  readonly entries: Entry[]
  readonly instanceUs: number[]
  /** Absent while nobody waits. */
  waiters: PromiseWithResolvers<void> | undefined
  isRejected: boolean
}

export interface QueuedEntry {
  readonly entry: Entry
  readonly instanceUs: number
}

const MAX_GROUP_ENTRIES = 1024

/**
 * What is not known to be committed, in order. One promise serves a group of entries: those that came until the next batch was begun, so
 * that none waits for a batch it is not in.
 */
export class WriteQueue {
  readonly #groups: Group[] = []
  readonly #onCommitted: (entries: readonly Entry[]) => void
  #open: Group | undefined
  #nextSequence: number
  #size = 0

  /** @param onCommitted told of the entries of each group, before those who wait for it */
  constructor(firstSequence: number, onCommitted: (entries: readonly Entry[]) => void) {
    this.#nextSequence = firstSequence
    this.#onCommitted = onCommitted
  }

  get size(): number {
    return this.#size
  }

  /** Of the oldest entry, or of the next one if there is none. */
  get firstSequence(): number {
    return this.#groups[0]?.firstSequence ?? this.#nextSequence
  }

  get nextSequence(): number {
    return this.#nextSequence
  }

  /** When the oldest entry came; undefined if there is none. */
  get oldestMs(): number | undefined {
    return this.#groups[0]?.startedMs
  }

  /** What comes next goes into a group of its own. */
  split(): void {
    this.#open = undefined
  }

  /** Gives its sequence. */
  add(entry: Entry, instanceUs: number, nowMs: () => number): number {
    let group = this.#open
    if (group === undefined || group.entries.length >= MAX_GROUP_ENTRIES) {
      group = {
        firstSequence: this.#nextSequence,
        startedMs: nowMs(),
        entries: [],
        instanceUs: [],
        waiters: undefined,
        isRejected: false,
      }
      this.#open = group
      this.#groups.push(group)
    }
    group.entries.push(entry)
    group.instanceUs.push(instanceUs)
    this.#size += 1
    this.#nextSequence += 1
    return this.#nextSequence - 1
  }

  /** Settles with the group of the entry that was added last. */
  waitForLatest(): Promise<void> {
    const group = this.#open
    if (group === undefined) return Promise.resolve()
    // A group that was given up on is never the open one.
    group.waiters ??= Promise.withResolvers<void>()
    return group.waiters.promise
  }

  /** The entry of a sequence that is in the queue. */
  at(sequence: number): QueuedEntry | undefined {
    const group = this.#groups.find(({ firstSequence, entries }) => sequence < firstSequence + entries.length)
    const index = sequence - (group?.firstSequence ?? 0)
    const entry = group?.entries[index]
    return entry === undefined ? undefined : { entry, instanceUs: group?.instanceUs[index] ?? 0 }
  }

  /** Everything up to this sequence is in the ledger. */
  commit(sequence: number): void {
    for (;;) {
      const group = this.#groups[0]
      if (group === undefined || group.firstSequence + group.entries.length - 1 > sequence) return
      this.#remove(group)
      this.#onCommitted(group.entries)
      group.waiters?.resolve()
    }
  }

  /** Tells those who wait since before that time that they wait in vain. Their entries stay. */
  rejectOlderThan(timeMs: number, reason: () => Error): void {
    for (const group of this.#groups) {
      if (group.startedMs > timeMs) return
      this.#reject(group, reason)
    }
  }

  /** Takes out what is left. */
  abandon(reason: () => Error): Entry[] {
    const left = this.#groups.flatMap(({ entries }) => entries)
    for (const group of this.#groups) this.#reject(group, reason)
    this.#groups.length = 0
    this.#open = undefined
    this.#size = 0
    return left
  }

  #reject(group: Group, reason: () => Error): void {
    if (group.isRejected) return
    group.isRejected = true
    if (group === this.#open) this.#open = undefined
    group.waiters?.reject(reason())
  }

  #remove(group: Group): void {
    this.#groups.shift()
    if (group === this.#open) this.#open = undefined
    this.#size -= group.entries.length
  }
}
