import type { BackgroundUsage, InvocationRecord } from '@carpool/core'
import {
  BLOCK_HEAD_BYTES,
  journalBytes,
  nameBytes,
  putName,
  sealBlock,
  TABLE,
  type JournalBytes,
  type RecordWords,
  type RevisionName,
} from './journal-format.ts'
import { BACKGROUND, clampFigure, encodeBackground, encodeInvocation, RECORD_BYTES, SLOT } from './slots.ts'

export type Entry = InvocationRecord | BackgroundUsage

export function isInvocation(entry: Entry): entry is InvocationRecord {
  return !('atMs' in entry)
}

/** 1,600 records or so. */
const BLOCK_BYTES = 256 * 1024

/** A revision as its records named it last, and the number that stands for it in this file. */
interface NamedRevision {
  readonly key: number
  readonly functionName: string
  readonly owner: string
  readonly memoryMb: number | null
}

/** Words that a record had, and the number that stands for them in this file. */
interface NamedWords {
  readonly key: number
  readonly words: RecordWords
}

/** The block that is written next, encoded in memory that is there for all of them, and the names that its file has already. */
export class JournalBlock {
  readonly #view: JournalBytes = journalBytes(BLOCK_BYTES)
  readonly #revisions = new Map<string, NamedRevision>()
  readonly #words = new Map<string, NamedWords>()
  /** Those of the record before: nearly always the same. */
  #latestWords: NamedWords | undefined
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
    this.#latestWords = undefined
    this.#nextKey = 0
  }

  /** Appends an entry. `unsound`: it can never be written, for its id is no UUID, or its names are too long. */
  put(entry: Entry, instanceUs: number, sequence: number): 'put' | 'full' | 'unsound' {
    const words = isInvocation(entry) ? this.#wordsKey(entry) : BACKGROUND
    const revision = this.#revisionKey(entry)
    const hasRoom = words !== undefined && revision !== undefined && this.#end + RECORD_BYTES <= BLOCK_BYTES
    // What finds no room in an empty block finds it nowhere.
    if (!hasRoom) return this.byteLength === 0 ? 'unsound' : 'full'
    const { slots, bytes } = this.#view
    const base = this.#end / 8
    if (!isInvocation(entry)) encodeBackground(slots, base, entry)
    else if (!encodeInvocation(slots, bytes, base, entry, instanceUs)) return 'unsound'
    slots[base + SLOT.sequence] = sequence
    slots[base + SLOT.revisionKey] = revision
    slots[base + SLOT.words] = words
    this.#end += RECORD_BYTES
    this.#records += 1
    return 'put'
  }

  /** To be called when everything is in it. */
  seal(): void {
    sealBlock(this.#view, this.#end)
  }

  /** Undefined if there is no room for their name. */
  #wordsKey(record: InvocationRecord): number | undefined {
    const { trigger, start, outcome } = record
    const error = record.error ?? null
    const latest = this.#latestWords
    if (latest !== undefined) {
      const [latestTrigger, latestStart, latestOutcome, latestError] = latest.words
      if (latestOutcome === outcome && latestStart === start && latestTrigger === trigger && latestError === error)
        return latest.key
    }
    const words: RecordWords = [trigger, start, outcome, error]
    const text = JSON.stringify(words)
    let named = this.#words.get(text)
    if (named === undefined) {
      named = { key: this.#words.size, words }
      if (!this.#putName(TABLE.words, named.key, text)) return undefined
      this.#words.set(text, named)
    }
    this.#latestWords = named
    return named.key
  }

  /** Undefined if there is no room for its name. Background usage knows no memory limit: it goes to the revision as it ran last. */
  #revisionKey(entry: Entry): number | undefined {
    const { functionName, revision, owner } = entry
    const memoryMb = isInvocation(entry) ? entry.memoryMb : null
    const known = this.#revisions.get(revision)
    const isKnown =
      known?.functionName === functionName && known.owner === owner && (memoryMb ?? known.memoryMb) === known.memoryMb
    if (isKnown) return known.key
    const name: RevisionName = [functionName, revision, owner, memoryMb === null ? null : clampFigure(memoryMb)]
    const text = JSON.stringify(name)
    const key = this.#nextKey
    if (!this.#putName(TABLE.revisions, key, text)) return undefined
    this.#nextKey += 1
    this.#revisions.set(revision, { key, functionName, owner, memoryMb })
    return key
  }

  /** Gives false if there is no room. */
  #putName(table: number, key: number, text: string): boolean {
    const length = nameBytes(text)
    if (this.#end + length > BLOCK_BYTES) return false
    putName(this.#view, this.#end, table, key, text)
    this.#end += length
    return true
  }
}
