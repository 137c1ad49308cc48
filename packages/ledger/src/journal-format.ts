import { crc32 } from 'node:zlib'
import type { BackgroundUsage, InvocationRecord } from '@carpool/core'

/**
 * The journal: files that hold records from when they are written until they are in the database.
 *
 *     file    magic u32 | version u32 | block*
 *     block   payload bytes u32 | CRC-32 of the payload u32 | payload: item*
 *     item    a record: its sequence f64 | the other figures of its slot, see {@link SLOT}
 *             a name: its own bytes, negated, f64 | table u32 | key u32 | text bytes u32 | 0 u32 | text, filled up to 8 bytes
 *
 * A block is what was written at once. Everything is at multiples of 8 bytes, in the byte order of the machine. A name gives the
 * meaning of a key in the records behind it; each file has all that its records need, so any build that knows the version can
 * read it.
 */
export const JOURNAL_VERSION = 2
/** `CPLJ`; other bytes where the byte order is another one. */
const MAGIC = 0x4a4c5043
export const HEADER_BYTES = 8
export const BLOCK_HEAD_BYTES = 8
const ID_SLOTS = 2
const NAME_HEAD_BYTES = 24

/** What a name is of. Its text is JSON of a {@link RevisionName}, or of {@link RecordEnums}. */
export const TABLE = { revisions: 0, enums: 1 } as const

/** The memory limit is in MiB. It is null for background usage: as the revision ran last. */
export type RevisionName = readonly [functionName: string, revision: string, owner: string, memoryMb: number | null]

/** The enums of a record have one key together. */
export type RecordEnums = readonly [trigger: string, start: string, outcome: string, error: string | null]

/** How far the journal is written: up to that byte of that file. Files with lower numbers are complete. */
export interface JournalPosition {
  readonly file: number
  readonly end: number
}

/** The same bytes by 8, 32 and 64 bits. */
export interface JournalBytes {
  readonly bytes: Buffer
  readonly u32s: Uint32Array
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
  return { bytes: Buffer.from(memory), u32s: new Uint32Array(memory), slots: new Float64Array(memory) }
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

/** The version in the header of a file; undefined if there is no header. */
export function versionOf({ u32s }: JournalBytes, end: number): number | undefined {
  return end >= HEADER_BYTES && u32s[0] === MAGIC ? u32s[1] : undefined
}

/** Puts the head in front of a payload that ends there. */
export function sealBlock({ bytes, u32s }: JournalBytes, end: number): void {
  u32s[0] = end - BLOCK_HEAD_BYTES
  u32s[1] = crc32(bytes.subarray(BLOCK_HEAD_BYTES, end))
}

/** How long the block is that begins there, in bytes; 0 if there is no whole one. */
function blockBytesAt({ bytes, u32s }: JournalBytes, at: number, end: number): number {
  const length = at + BLOCK_HEAD_BYTES <= end ? (u32s[at / 4] ?? 0) : 0
  const from = at + BLOCK_HEAD_BYTES
  if (length === 0 || length % 8 !== 0 || from + length > end) return 0
  return crc32(bytes.subarray(from, from + length)) === u32s[at / 4 + 1] ? BLOCK_HEAD_BYTES + length : 0
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
export function putName({ bytes, u32s, slots }: JournalBytes, at: number, table: number, key: number, text: string): void {
  slots[at / 8] = -nameBytes(text)
  const quad = at / 4 + 2
  u32s[quad] = table
  u32s[quad + 1] = key
  u32s[quad + 2] = bytes.write(text, at + NAME_HEAD_BYTES)
  u32s[quad + 3] = 0
}

/** The name that begins there; undefined if there is none. */
export function nameAt({ bytes, u32s, slots }: JournalBytes, at: number, end: number): Name | undefined {
  const itemBytes = -(slots[at / 8] ?? 0)
  if (!(itemBytes >= NAME_HEAD_BYTES && itemBytes % 8 === 0 && at + itemBytes <= end)) return undefined
  const [table = 0, key = 0, textBytes = 0] = u32s.subarray(at / 4 + 2)
  const from = at + NAME_HEAD_BYTES
  return textBytes > itemBytes - NAME_HEAD_BYTES
    ? undefined
    : { table, key, text: bytes.toString('utf8', from, from + textBytes), itemBytes }
}

function filledUp(length: number): number {
  return Math.ceil(length / 8) * 8
}

/** The place of each figure of a record, in float64. The id takes the last two. A change makes another version of the journal. */
export const SLOT = {
  sequence: 0,
  /** The key of its name in the journal. */
  revisionKey: 1,
  /** The key of their name in the journal, or {@link BACKGROUND}. */
  enumCode: 2,
  startedAtMs: 3,
  status: 4,
  host: 5,
  attempts: 6,
  queueUs: 7,
  initUs: 8,
  wallUs: 9,
  cpuUs: 10,
  initCpuUs: 11,
  instanceUs: 12,
  memoryPeakKb: 13,
  bytesIn: 14,
  bytesOut: 15,
  egressBytesIn: 16,
  egressBytesOut: 17,
  openUs: 18,
  sockets: 19,
  socketUs: 20,
  id: 21,
} as const
export const RECORD_BYTES = 23 * 8

/** Up to version 1 there were neither streams nor sockets, and the id was in place of their figures. */
const VERSION_1 = 1
const RECORD_BYTES_1 = 20 * 8

export function isKnownVersion(version: number): boolean {
  return version === JOURNAL_VERSION || version === VERSION_1
}

export function recordBytesOf(version: number): number {
  return version === VERSION_1 ? RECORD_BYTES_1 : RECORD_BYTES
}

/** A record of an older version as this one has it. */
export class OlderRecord {
  readonly view = journalBytes(RECORD_BYTES)

  take({ slots }: JournalBytes, at: number): JournalBytes {
    const base = at / 8
    const idBase = base + RECORD_BYTES_1 / 8 - ID_SLOTS
    this.view.slots.set(slots.subarray(base, idBase))
    this.view.bytes.fill(0, SLOT.openUs * 8, SLOT.id * 8)
    this.view.slots.set(slots.subarray(idBase, idBase + ID_SLOTS), SLOT.id)
    return this.view
  }
}

/** In place of the enums: the record is one of background usage. */
export const BACKGROUND = -1

/** The last instant that a Date can have. */
const MAX_TIME_MS = 8.64e15

/**
 * A whole number from 0 to 2^53 - 1, as a column takes it. Some figures come from a process that runs user code and may be
 * anything.
 */
export function clampFigure(value: number): number {
  if (!(value > 0) || value === Number.POSITIVE_INFINITY) return 0
  return value < Number.MAX_SAFE_INTEGER ? Math.floor(value) : Number.MAX_SAFE_INTEGER
}

/** Gives false, with a part of a record, if the id is no UUID. The caller sets sequence and keys. */
export function encodeInvocation(
  slots: Float64Array,
  bytes: Uint8Array,
  base: number,
  record: InvocationRecord,
  instanceUs: number,
): boolean {
  if (!writeUuid(record.id, bytes, (base + SLOT.id) * 8)) return false
  slots[base + SLOT.startedAtMs] = Math.min(clampFigure(record.startedAtMs), MAX_TIME_MS)
  slots[base + SLOT.status] = clampFigure(record.status)
  slots[base + SLOT.host] = clampFigure(record.host)
  slots[base + SLOT.attempts] = clampFigure(record.attempts)
  slots[base + SLOT.queueUs] = clampFigure(record.queueUs)
  slots[base + SLOT.initUs] = clampFigure(record.initUs)
  slots[base + SLOT.wallUs] = clampFigure(record.wallUs)
  slots[base + SLOT.cpuUs] = clampFigure(record.cpuUs)
  slots[base + SLOT.initCpuUs] = clampFigure(record.initCpuUs)
  slots[base + SLOT.instanceUs] = clampFigure(instanceUs)
  slots[base + SLOT.memoryPeakKb] = clampFigure(record.memoryPeakKb)
  slots[base + SLOT.bytesIn] = clampFigure(record.bytesIn)
  slots[base + SLOT.bytesOut] = clampFigure(record.bytesOut)
  slots[base + SLOT.egressBytesIn] = clampFigure(record.egressBytesIn)
  slots[base + SLOT.egressBytesOut] = clampFigure(record.egressBytesOut)
  slots[base + SLOT.openUs] = clampFigure(record.openUs)
  slots[base + SLOT.sockets] = clampFigure(record.sockets)
  slots[base + SLOT.socketUs] = clampFigure(record.socketUs)
  return true
}

export function encodeBackground(slots: Float64Array, base: number, usage: BackgroundUsage): void {
  slots[base + SLOT.startedAtMs] = Math.min(clampFigure(usage.atMs), MAX_TIME_MS)
  slots[base + SLOT.host] = clampFigure(usage.host)
  slots[base + SLOT.cpuUs] = clampFigure(usage.cpuUs)
  slots[base + SLOT.egressBytesIn] = clampFigure(usage.egressBytesIn)
  slots[base + SLOT.egressBytesOut] = clampFigure(usage.egressBytesOut)
  slots[base + SLOT.sockets] = clampFigure(usage.sockets)
  slots[base + SLOT.socketUs] = clampFigure(usage.socketUs)
}

const UUID_LENGTH = 36
const HYPHEN = 0x2d
const NO_DIGIT = 0xff

/** Value of each hexadecimal digit by its character code. */
const DIGITS = new Uint8Array(128).fill(NO_DIGIT)
for (let value = 0; value < 16; value += 1) {
  const digit = value.toString(16)
  DIGITS[digit.charCodeAt(0)] = value
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value
}

/** Writes the 16 bytes of a UUID. Gives false, with any bytes, if the text is not a UUID. */
export function writeUuid(uuid: string, target: Uint8Array, offset: number): boolean {
  if (uuid.length !== UUID_LENGTH) return false
  let check = 0
  let position = 0
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) {
      if (uuid.charCodeAt(position) !== HYPHEN) return false
      position += 1
    }
    const high = DIGITS[uuid.charCodeAt(position)] ?? NO_DIGIT
    const low = DIGITS[uuid.charCodeAt(position + 1)] ?? NO_DIGIT
    check |= high | low
    target[offset + index] = (high << 4) | low
    position += 2
  }
  return check < 16
}

/** The text of a UUID; of other bytes, their hexadecimal digits. */
export function readUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
  if (bytes.length !== 16) return hex
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
