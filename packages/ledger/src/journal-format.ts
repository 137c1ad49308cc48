import { crc32 } from 'node:zlib'

/**
 * The journal: files that hold records from when they are written until they are in the database.
 *
 *     file    magic u32 | version u32 | block*
 *     block   payload bytes u32 | CRC-32 of the payload u32 | payload: item*
 *     item    a record: its sequence f64 | the other figures of its slot, see `slots.ts`
 *             a name: its own bytes, negated, f64 | table u32 | key u32 | text bytes u32 | 0 u32 | text, filled up to 8 bytes
 *
 * A block is what was written at once. Everything stands at multiples of 8 bytes, in the byte order of the machine. A name says what a number
 * in the records behind it stands for; each file has those that its records need, so that any build that knows the version can read it.
 */
export const JOURNAL_VERSION = 1
/** `CPLJ`; other bytes where the byte order is another one. */
const MAGIC = 0x4a4c5043
export const HEADER_BYTES = 8
export const BLOCK_HEAD_BYTES = 8
const NAME_HEAD_BYTES = 24

/** What a name is of. Its text is JSON of a {@link RevisionName}, or of {@link RecordWords}. */
export const TABLE = { revisions: 0, words: 1 } as const

/** The function, revision, owner and memory limit in MiB of a record. The limit is null for background usage: as the revision ran last. */
export type RevisionName = readonly [functionName: string, revision: string, owner: string, memoryMb: number | null]

/** The words of a record. */
export type RecordWords = readonly [trigger: string, start: string, outcome: string, error: string | null]

/** How far the journal is written: up to that byte of that file. Those with lower numbers are complete. */
export interface JournalPosition {
  readonly file: number
  readonly end: number
}

/** The same bytes by 8, 32 and 64 bits. */
export interface JournalBytes {
  readonly bytes: Buffer
  readonly quads: Uint32Array
  readonly slots: Float64Array
}

export interface Name {
  readonly table: number
  readonly key: number
  readonly text: string
  /** Of the whole item. */
  readonly itemBytes: number
}

export function journalBytes(length: number): JournalBytes {
  const memory = new ArrayBuffer(filledUp(length))
  return { bytes: Buffer.from(memory), quads: new Uint32Array(memory), slots: new Float64Array(memory) }
}

export function journalFileName(number: number): string {
  return `ledger-journal-${number}`
}

/** Numbers of the files of a journal among the names in its folder, the oldest first. */
export function journalNumbers(names: readonly string[]): number[] {
  const numbers = names.map((name) => Number(/^ledger-journal-([1-9]\d{0,14})$/.exec(name)?.[1]))
  return numbers.filter((number) => !Number.isNaN(number)).toSorted((a, b) => a - b)
}

export function header(): Uint8Array {
  return new Uint8Array(Uint32Array.of(MAGIC, JOURNAL_VERSION).buffer)
}

/** The version that the header of a file says; undefined if there is no header. */
export function versionOf({ quads }: JournalBytes, end: number): number | undefined {
  return end >= HEADER_BYTES && quads[0] === MAGIC ? quads[1] : undefined
}

/** Puts the head in front of a payload that ends there. */
export function sealBlock({ bytes, quads }: JournalBytes, end: number): void {
  quads[0] = end - BLOCK_HEAD_BYTES
  quads[1] = crc32(bytes.subarray(BLOCK_HEAD_BYTES, end))
}

/** How long the block is that begins there, in bytes; 0 if there is no whole one. */
function blockBytesAt({ bytes, quads }: JournalBytes, at: number, end: number): number {
  const length = at + BLOCK_HEAD_BYTES <= end ? (quads[at / 4] ?? 0) : 0
  const from = at + BLOCK_HEAD_BYTES
  if (length === 0 || length % 8 !== 0 || from + length > end) return 0
  return crc32(bytes.subarray(from, from + length)) === quads[at / 4 + 1] ? BLOCK_HEAD_BYTES + length : 0
}

/** A part of what was read: a block with its head, or bytes in which no whole block begins. */
export interface Stretch {
  readonly from: number
  readonly to: number
  readonly isBlock: boolean
}

export function* stretchesOf(view: JournalBytes, from: number, end: number): Generator<Stretch, undefined> {
  for (let at = from; at < end; ) {
    const length = blockBytesAt(view, at, end)
    let to = at + (length > 0 ? length : 8)
    if (length === 0) while (to < end && blockBytesAt(view, to, end) === 0) to += 8
    to = Math.min(to, end)
    yield { from: at, to, isBlock: length > 0 }
    at = to
  }
}

export function nameBytes(text: string): number {
  return NAME_HEAD_BYTES + filledUp(Buffer.byteLength(text))
}

/** There must be {@link nameBytes} of room. */
export function putName({ bytes, quads, slots }: JournalBytes, at: number, table: number, key: number, text: string): void {
  slots[at / 8] = -nameBytes(text)
  const quad = at / 4 + 2
  quads[quad] = table
  quads[quad + 1] = key
  quads[quad + 2] = bytes.write(text, at + NAME_HEAD_BYTES)
  quads[quad + 3] = 0
}

/** The name that begins there; undefined if what is there is none. */
export function nameAt({ bytes, quads, slots }: JournalBytes, at: number, end: number): Name | undefined {
  const itemBytes = -(slots[at / 8] ?? 0)
  if (!(itemBytes >= NAME_HEAD_BYTES && itemBytes % 8 === 0 && at + itemBytes <= end)) return undefined
  const [table = 0, key = 0, textBytes = 0] = quads.subarray(at / 4 + 2)
  const from = at + NAME_HEAD_BYTES
  return textBytes > itemBytes - NAME_HEAD_BYTES
    ? undefined
    : { table, key, text: bytes.toString('utf8', from, from + textBytes), itemBytes }
}

function filledUp(length: number): number {
  return Math.ceil(length / 8) * 8
}
