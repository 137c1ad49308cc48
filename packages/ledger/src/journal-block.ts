import type { BackgroundUsage, InvocationRecord } from '@carpool/core'
import {
  BACKGROUND,
  BLOCK_HEAD_BYTES,
  clampFigure,
  encodeBackground,
  encodeInvocation,
  journalBytes,
  nameBytes,
  putName,
  RECORD_BYTES,
  sealBlock,
  SLOT,
  TABLE,
  type RecordEnums,
  type RevisionName,
} from './journal-format.ts'

export type Entry = InvocationRecord | BackgroundUsage

export function isInvocation(entry: Entry): entry is InvocationRecord {
  return !('atMs' in entry)
}

/** 1,400 records or so. */
const BLOCK_BYTES = 256 * 1024

/** A revision as its records named it last, and its key in this file. */
interface NamedRevision {
  readonly key: number
  readonly functionName: string
  readonly owner: string
  readonly memoryMb: number | null
}

/** The block that is written next, encoded in memory that all blocks share, and the names that its file has already. */
export class JournalBlock {
  readonly #view = journalBytes(BLOCK_BYTES)
  readonly #revisions = new Map<string, NamedRevision>()
  readonly #enumCodes = new Map<string, number>()
  /** Of the record before: nearly always the same. */
  #latestEnums: RecordEnums | undefined
  #latestEnumCode = 0
  #nextRevisionKey = 0
  #end = BLOCK_HEAD_BYTES
  #records = 0

  /** Records in it. */
  get records(): number {
    return this.#records
  }

  /** Its bytes are the first {@link byteLength} of these. */
  get bytes(): Buffer {
    return this.#view.bytes
  }

  /** 0 if there is nothing in it. */
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
    this.#enumCodes.clear()
    this.#latestEnums = undefined
    this.#nextRevisionKey = 0
  }

  /** Appends an entry. `unsound`: it can never be written, for its id is no UUID, or its names are too long. */
  put(entry: Entry, instanceUs: number, sequence: number): 'put' | 'full' | 'unsound' {
    const enumCode = isInvocation(entry) ? this.#enumCode(entry) : BACKGROUND
    const revision = this.#revisionKey(entry)
    const hasRoom = enumCode !== undefined && revision !== undefined && this.#end + RECORD_BYTES <= BLOCK_BYTES
    // What finds no room in an empty block finds it nowhere.
    if (!hasRoom) return this.byteLength === 0 ? 'unsound' : 'full'
    const { slots, bytes } = this.#view
    const base = this.#end / 8
    if (!isInvocation(entry)) encodeBackground(slots, base, entry)
    else if (!encodeInvocation(slots, bytes, base, entry, instanceUs)) return 'unsound'
    slots[base + SLOT.sequence] = sequence
    slots[base + SLOT.revisionKey] = revision
    slots[base + SLOT.enumCode] = enumCode
    this.#end += RECORD_BYTES
    this.#records += 1
    return 'put'
  }

  /** To be called when everything is in it. */
  seal(): void {
    sealBlock(this.#view, this.#end)
  }

  /** Undefined if there is no room for their name. */
  #enumCode(record: InvocationRecord): number | undefined {
    const { trigger, start, outcome } = record
    const error = record.error ?? null
    const latest = this.#latestEnums
    if (latest !== undefined && latest[2] === outcome && latest[1] === start && latest[0] === trigger && latest[3] === error)
      return this.#latestEnumCode
    const enums: RecordEnums = [trigger, start, outcome, error]
    const text = JSON.stringify(enums)
    const code = this.#enumCodes.get(text) ?? this.#enumCodes.size
    if (!this.#enumCodes.has(text) && !this.#putName(TABLE.enums, code, text)) return undefined
    this.#enumCodes.set(text, code)
    this.#latestEnums = enums
    this.#latestEnumCode = code
    return code
  }

  /** Undefined if there is no room for its name. Background usage has no memory limit: it goes to the revision as it ran last. */
  #revisionKey(entry: Entry): number | undefined {
    const { functionName, revision, owner } = entry
    const memoryMb = isInvocation(entry) ? entry.memoryMb : null
    const known = this.#revisions.get(revision)
    const isKnown =
      known?.functionName === functionName && known.owner === owner && (memoryMb ?? known.memoryMb) === known.memoryMb
    if (isKnown) return known.key
    const name: RevisionName = [functionName, revision, owner, memoryMb === null ? null : clampFigure(memoryMb)]
    const key = this.#nextRevisionKey
    if (!this.#putName(TABLE.revisions, key, JSON.stringify(name))) return undefined
    this.#nextRevisionKey += 1
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
