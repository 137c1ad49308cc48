import {
  bytesPart,
  bytesSet,
  fromCharCode,
  type List,
  max,
  min,
  SafeList,
  SafeUint8Array,
  typedArrayLength,
} from '../language/primordials.ts'

/** Bytes of a page of memory (WebAssembly core specification 2.0, section 4.2.8). */
export const PAGE_BYTES = 65_536

/** Magic number and version. */
const PREAMBLE = '\0asm\x01\0\0\0'
const MEMORY_SECTION = 5
/** Flags of a memory's limits: it has a maximum, it is shared, its addresses have 64 bits. */
const HAS_MAXIMUM = 0x01
const SHARED = 0x02
const IS_64_BIT = 0x04
/** More than the flags above, so none of them is taken to be set. */
const UNKNOWN_FLAGS = 0x80
const UNREADABLE = 'The memory section of the module cannot be read.'
/** A number of 32 bits takes up to so many bytes. */
const NUMBER_BYTES = 5

export interface CappedModule {
  readonly ok: true
  /** The module, with memories that grow no further than they may. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** What its own memories may grow to, all together. */
  readonly pages: number
}

export interface RefusedModule {
  readonly ok: false
  readonly message: string
}

/** How far a memory may grow: as far as it wants, but to `limitPages` at most, unless it begins larger. */
export function cappedMaximum(initial: number, maximum: number | undefined, limitPages: number): number {
  return min(maximum ?? Infinity, max(initial, limitPages))
}

/**
 * Writes into the memory section of a module (core specification 2.0, section 5.5.8) how far its memories may grow: from within,
 * they grow by an instruction, which nobody else sees. V8 then lets that fail as the specification says. What cannot be read is
 * refused, for V8 might read it.
 * @param source is not changed
 */
export function capMemories(source: Uint8Array<ArrayBuffer>, limitPages: number): CappedModule | RefusedModule {
  const reader = new Reader(source)
  const section = findMemorySection(reader)
  if (section === undefined) return { ok: true, bytes: source, pages: 0 }
  if (typeof section === 'string') return { ok: false, message: section }

  const read = readMemories(reader, limitPages)
  if (typeof read === 'string') return { ok: false, message: read }
  if (reader.at !== section.end) return { ok: false, message: UNREADABLE }
  return { ok: true, bytes: splice(source, section, read.content), pages: read.pages }
}

/** Reads the content of a memory section. @returns the same with maxima, and their sum; or why the module is refused */
function readMemories(reader: Reader, limitPages: number): { content: List<number>; pages: number } | string {
  const content = new SafeList<number>()
  const count = reader.number()
  if (count === undefined) return UNREADABLE
  pushNumber(content, count)
  let pages = 0
  for (let index = 0; index < count; index++) {
    const flags = reader.byte() ?? UNKNOWN_FLAGS
    if ((flags & SHARED) !== 0) return 'Shared memory is not available.'
    if ((flags & IS_64_BIT) !== 0) return 'Memory with addresses of 64 bits is not available.'
    const initial = reader.number()
    const declared = flags === HAS_MAXIMUM ? reader.number() : undefined
    if (flags > HAS_MAXIMUM || initial === undefined || (flags === HAS_MAXIMUM && declared === undefined)) return UNREADABLE
    const maximum = cappedMaximum(initial, declared, limitPages)
    content[content.length] = HAS_MAXIMUM
    pushNumber(content, initial)
    pushNumber(content, maximum)
    pages += maximum
  }
  return { content, pages }
}

interface Section {
  /** Where its number stands. */
  readonly start: number
  readonly end: number
}

/** Leaves the reader at the content of the section. @returns what is wrong, or undefined if there is no such section */
function findMemorySection(reader: Reader): Section | string | undefined {
  for (let index = 0; index < PREAMBLE.length; index++) {
    if (fromCharCode(reader.byte() ?? 0xff) !== PREAMBLE[index]) return 'The bytes are no WebAssembly module of version 1.'
  }
  let found: Section | undefined
  let content = 0
  while (reader.at < reader.length) {
    const start = reader.at
    const id = reader.byte()
    const size = reader.number()
    if (size === undefined || reader.at + size > reader.length) return 'The sections of the module cannot be read.'
    if (id === MEMORY_SECTION) {
      if (found !== undefined) return 'The module has two memory sections.'
      found = { start, end: reader.at + size }
      content = reader.at
    }
    reader.at += size
  }
  if (found !== undefined) reader.at = content
  return found
}

function splice(source: Uint8Array, { start, end }: Section, content: List<number>): Uint8Array<ArrayBuffer> {
  const head = new SafeList<number>()
  head[0] = MEMORY_SECTION
  pushNumber(head, content.length)
  const rest = bytesPart(source, end, typedArrayLength(source))
  const bytes = new SafeUint8Array(start + head.length + content.length + typedArrayLength(rest))
  bytesSet(bytes, bytesPart(source, 0, start), 0)
  for (let index = 0; index < head.length; index++) bytes[start + index] = head[index]!
  for (let index = 0; index < content.length; index++) bytes[start + head.length + index] = content[index]!
  bytesSet(bytes, rest, start + head.length + content.length)
  return bytes
}

/** Appends a number as unsigned LEB128. */
function pushNumber(list: List<number>, value: number): void {
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) list[list.length] = (rest & 0x7f) | 0x80
  list[list.length] = rest
}

/** Reads bytes one after the other; what is beyond the end is undefined. */
class Reader {
  readonly #bytes: Uint8Array
  readonly length: number
  at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.length = typedArrayLength(bytes)
  }

  byte(): number | undefined {
    return this.at < this.length ? this.#bytes[this.at++] : undefined
  }

  /** An unsigned number of 32 bits, as LEB128. */
  number(): number | undefined {
    let value = 0
    for (let index = 0; index < NUMBER_BYTES; index++) {
      const byte = this.byte()
      if (byte === undefined) return undefined
      value += (byte & 0x7f) * 2 ** (7 * index)
      if (byte < 0x80) return value < 2 ** 32 ? value : undefined
    }
    return undefined
  }
}
