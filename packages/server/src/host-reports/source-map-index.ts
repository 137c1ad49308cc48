import { checkJsonShape } from '../json-shape.ts'

/**
 * A source map as it is kept: its mappings as they are written, with marks in them. A mapping takes two bytes as it is written,
 * and a hundred as an object; from the mark before it, the place of a position is found by reading a KiB.
 */
export interface SourceMapIndex {
  readonly sources: readonly string[]
  readonly mappings: Uint8Array<ArrayBuffer>
  readonly marks: Int32Array<ArrayBuffer>
}

/** A place in the author's files, from 0. */
interface Origin {
  readonly source: string
  readonly line: number
  readonly column: number
}

/** Values in a map, such as names: to make millions would take all memory. Files in it, which are given on to another thread. */
const MAX_VALUES = 200_000
const MAX_SOURCES = 20_000
/** Characters that the name of a file in a map may bring: it stands in each line that is mapped. */
const MAX_SOURCE_CHARS = 256

/** Bytes of mappings from one mark to the next. */
const MARK_EVERY = 1024
/** Numbers of a mark. */
const MARK_SIZE = 7
/** Digits of a number of 32 bits. */
const MAX_DIGITS = 7

const COMMA = 0x2c
const SEMICOLON = 0x3b
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const VALUES = new Int8Array(256).fill(-1)
for (const [value, digit] of Buffer.from(DIGITS).entries()) VALUES[digit] = value

/** Undefined if the text is no source map v3 in one piece. */
export function indexSourceMap(text: string): SourceMapIndex | undefined {
  try {
    checkJsonShape(Buffer.from(text), MAX_VALUES)
    const { sources, mappings } = JSON.parse(text) as { readonly sources: readonly unknown[]; readonly mappings: string }
    const names = sources.slice(0, MAX_SOURCES).map((name) => (typeof name === 'string' ? name.slice(-MAX_SOURCE_CHARS) : ''))
    const bytes = Uint8Array.from(Buffer.from(mappings, 'latin1'))
    return { sources: names, mappings: bytes, marks: marksOf(bytes) }
  } catch {
    return undefined
  }
}

/** Where the last mapping up to a position of the bundle leads, both from 0; undefined if there is none, or it leads nowhere. */
export function originOf({ sources, mappings, marks }: SourceMapIndex, line: number, column: number): Origin | undefined {
  const isBehind = (at: { readonly line: number; readonly column: number }): boolean =>
    at.line > line || (at.line === line && at.column > column)
  let mark = 0
  let end = marks.length / MARK_SIZE
  while (end - mark > 1) {
    const middle = (mark + end) >> 1
    if (isBehind(new Mappings(mappings, marks, middle))) end = middle
    else mark = middle
  }
  const at = new Mappings(mappings, marks, mark)
  let found = at.place
  const stop = marks[end * MARK_SIZE] ?? mappings.length
  while (at.offset < stop) {
    at.step()
    if (isBehind(at)) break
    found = at.place
  }
  const source = found && sources[found.source]
  return source ? { source, line: found!.line, column: found!.column } : undefined
}

/** @throws Error if they are no mappings */
function marksOf(mappings: Uint8Array): Int32Array<ArrayBuffer> {
  const marks: number[] = []
  const at = new Mappings(mappings)
  let next = 0
  while (at.offset < mappings.length) {
    if (at.offset >= next) {
      marks.push(...at.mark)
      next = at.offset + MARK_EVERY
    }
    at.step()
  }
  return Int32Array.from(marks)
}

/** Goes through mappings, from the beginning or from a mark on. */
class Mappings {
  readonly #bytes: Uint8Array
  /** Of what comes next. */
  offset: number
  /** Where the last mapping stands in the bundle, or the beginning of a line. */
  line: number
  column: number
  #source: number
  #sourceLine: number
  #sourceColumn: number
  #isMapped: boolean

  constructor(bytes: Uint8Array, marks?: Int32Array, mark = 0) {
    const [offset, line, column, source, sourceLine, sourceColumn, isMapped] =
      marks?.subarray(mark * MARK_SIZE, (mark + 1) * MARK_SIZE) ?? []
    this.#bytes = bytes
    this.offset = offset ?? 0
    this.line = line ?? 0
    this.column = column ?? 0
    this.#source = source ?? 0
    this.#sourceLine = sourceLine ?? 0
    this.#sourceColumn = sourceColumn ?? 0
    this.#isMapped = isMapped === 1
  }

  get mark(): number[] {
    const isMapped = this.#isMapped ? 1 : 0
    return [this.offset, this.line, this.column, this.#source, this.#sourceLine, this.#sourceColumn, isMapped]
  }

  /** Where the last mapping leads. */
  get place(): { source: number; line: number; column: number } | undefined {
    return this.#isMapped ? { source: this.#source, line: this.#sourceLine, column: this.#sourceColumn } : undefined
  }

  /** Goes past a mapping or what stands between two. @throws Error if it is neither */
  step(): void {
    const byte = this.#bytes[this.offset]
    if (byte === SEMICOLON) {
      this.line++
      this.column = 0
      this.offset++
    } else if (byte === COMMA) this.offset++
    else this.#readMapping()
  }

  #readMapping(): void {
    this.column += this.#readNumber()
    this.#isMapped = this.#isInMapping()
    if (!this.#isMapped) return
    this.#source += this.#readNumber()
    this.#sourceLine += this.#readNumber()
    this.#sourceColumn += this.#readNumber()
    // That of a name.
    if (this.#isInMapping()) this.#readNumber()
    if (this.#isInMapping()) throw new Error('A mapping has more than five numbers.')
  }

  #isInMapping(): boolean {
    const byte = this.#bytes[this.offset]
    return byte !== undefined && byte !== COMMA && byte !== SEMICOLON
  }

  /** Digits of base 64, the lowest first: five bits each, and one that says whether more follow. */
  #readNumber(): number {
    let number = 0
    for (let digit = 0; digit < MAX_DIGITS; digit++) {
      const value = VALUES[this.#bytes[this.offset++]!] ?? -1
      if (value === -1) break
      number += (value & 31) * 32 ** digit
      // The lowest bit is the sign.
      if (value < 32) return number % 2 === 1 ? -(number - 1) / 2 : number / 2
    }
    throw new Error('A mapping has what is no number.')
  }
}
