import type { BackgroundUsage, InvocationRecord } from '@carpool/core'
import {
  BLOCK_HEAD_BYTES,
  journalBytes,
  nameBytes,
  putName,
  sealBlock,
  TABLE,
  type JournalBytes,
  type RevisionName,
} from './journal-format.ts'
import { wordsCode, wordsOf } from './record-codes.ts'
import { BACKGROUND, clampFigure, encodeBackground, encodeInvocation, RECORD_BYTES, SLOT } from './slots.ts'

export type Entry = InvocationRecord | BackgroundUsage

export function isInvocation(entry: Entry): entry is InvocationRecord {
  return !('atMs' in entry)
}

/** 1,600 records or so. */
const BLOCK_BYTES = 256 * 1024
/** So that a name and a record always find room in an empty block. */
const MAX_NAME_BYTES = 64 * 1024

/** A revision as its records named it last, and the number that stands for it in this file. */
interface NamedRevision {
  readonly key: number
  readonly functionName: string
  readonly owner: string
  readonly memoryMb: number | null
}

/** The block that is written next, encoded in memory that is there for all of them, and the names that its file has already. */
export class JournalBlock {
  readonly #view: JournalBytes = journalBytes(BLOCK_BYTES)
  readonly #revisions = new Map<string, NamedRevision>()
  readonly #words = new Set<number>()
  #nextKey = 0
  #end = BLOCK_HEAD_BYTES
  #records = 0

  /** Records in it. */
  get records(): number {
    return this.#records
  }

  /** Its bytes, if there are any, are the first {@link byteLength} of these. */
  get bytes(): Buffer {
    return this.#view.bytes
  }

  get byteLength(): number {
    return this.#end === BLOCK_HEAD_BYTES ? 0 : this.#end
  }

  /** Begins the next block of the same file. */
  clear(): void {
    this.#end = BLOCK_HEAD_BYTES
    this.#records = 0
  }

  /** Begins the first block of a file. */
  beginFile(): void {
    this.clear()
    this.#revisions.clear()
    this.#words.clear()
    this.#nextKey = 0
  }

  /** Appends an entry. `unsound`: it can never be written, for its id is no UUID, or a word is unknown. */
  put(entry: Entry, instanceUs: number, sequence: number): 'put' | 'full' | 'unsound' {
    const words = isInvocation(entry) ? wordsCode(entry.outcome, entry.start, entry.trigger, entry.error) : BACKGROUND
    if (Number.isNaN(words)) return 'unsound'
    if (words !== BACKGROUND && !this.#words.has(words)) {
      if (!this.#putName(TABLE.words, words, JSON.stringify(wordsOf(words)))) return 'full'
      this.#words.add(words)
    }
    const revision = this.#revisions.get(entry.revision)
    let revisionKey = revision?.key
    if (revision === undefined || !isOf(revision, entry)) {
      const { functionName, owner } = entry
      const memoryMb = isInvocation(entry) ? entry.memoryMb : null
      const name: RevisionName = [functionName, entry.revision, owner, memoryMb === null ? null : clampFigure(memoryMb)]
      const text = JSON.stringify(name)
      if (nameBytes(text) > MAX_NAME_BYTES) return 'unsound'
      revisionKey = this.#nextKey
      if (!this.#putName(TABLE.revisions, revisionKey, text)) return 'full'
      this.#nextKey += 1
      this.#revisions.set(entry.revision, { key: revisionKey, functionName, owner, memoryMb })
    }
    if (this.#end + RECORD_BYTES > BLOCK_BYTES) return 'full'
    const { slots, bytes } = this.#view
    const base = this.#end / 8
    if (!isInvocation(entry)) encodeBackground(slots, base, entry)
    else if (!encodeInvocation(slots, bytes, base, entry, instanceUs)) return 'unsound'
    slots[base + SLOT.sequence] = sequence
    slots[base + SLOT.revisionKey] = revisionKey ?? 0
    slots[base + SLOT.words] = words
    this.#end += RECORD_BYTES
    this.#records += 1
    return 'put'
  }

  /** To be called when everything is in it. */
  seal(): void {
    sealBlock(this.#view, this.#end)
  }

  #putName(table: number, key: number, text: string): boolean {
    const length = nameBytes(text)
    if (this.#end + length > BLOCK_BYTES) return false
    putName(this.#view, this.#end, table, key, text)
    this.#end += length
    return true
  }
}

/** Background usage knows no memory limit: it goes to the revision as it ran last. */
function isOf(revision: NamedRevision, entry: Entry): boolean {
  const hasItsMemory = !isInvocation(entry) || revision.memoryMb === entry.memoryMb
  return hasItsMemory && revision.functionName === entry.functionName && revision.owner === entry.owner
}
