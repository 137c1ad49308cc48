import { type Bytes, concat, trimZeroes } from '../node/bytes.ts'

/** What little of DER (ITU-T X.690) keys need. */
export interface Element {
  readonly tag: number
  readonly content: Bytes
  /** With its tag and length. */
  readonly whole: Bytes
}

export const TAGS = { integer: 2, bits: 3, octets: 4, nothing: 5, oid: 6, sequence: 0x30, first: 0xa0, second: 0xa1 } as const

export class DerError extends Error {}

/** The elements that stand one after the other. @throws DerError */
export function readAll(bytes: Bytes): Element[] {
  const elements: Element[] = []
  for (let at = 0; at < bytes.length; ) {
    const element = readElement(bytes.subarray(at))
    elements.push(element)
    at += element.whole.length
  }
  return elements
}

/** The one with which the bytes begin. @throws DerError */
export function readElement(bytes: Bytes): Element {
  const [tag, first] = bytes
  if (tag === undefined || first === undefined) throw new DerError('The DER ends early.')
  const sizeBytes = first < 0x80 ? 0 : first & 0x7f
  if (sizeBytes > 4 || first === 0x80) throw new DerError('The DER has no length that can be read.')
  let size = first < 0x80 ? first : 0
  for (let index = 0; index < sizeBytes; index++) size = size * 256 + (bytes[2 + index] ?? 0)
  const start = 2 + sizeBytes
  if (bytes.length - start < size) throw new DerError('The DER ends early.')
  return { tag, content: bytes.subarray(start, start + size), whole: bytes.subarray(0, start + size) }
}

/** What is in a sequence. @throws DerError */
export function readSequence(bytes: Bytes): Element[] {
  const { tag, content } = readElement(bytes)
  if (tag !== TAGS.sequence) throw new DerError('The DER is no sequence.')
  return readAll(content)
}

/** One of several, which hostile bytes may lack. @throws DerError */
export function field(elements: readonly Element[], index: number): Element {
  const element = elements[index]
  if (element === undefined) throw new DerError('The DER lacks a field.')
  return element
}

export function write(tag: number, ...parts: readonly Uint8Array[]): Bytes {
  const content = concat(...parts)
  const { length } = content
  const sizes: number[] = []
  if (length >= 0x80) {
    for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) sizes.unshift(rest % 256)
  }
  const head = length < 0x80 ? [tag, length] : [tag, 0x80 | sizes.length, ...sizes]
  return concat(Uint8Array.from(head), content)
}

export function sequence(...parts: readonly Uint8Array[]): Bytes {
  return write(TAGS.sequence, ...parts)
}

/** A number that is not negative. */
export function integer(value: Bytes): Bytes {
  const trimmed = trimZeroes(value)
  return write(TAGS.integer, trimmed.length === 0 || trimmed[0]! >= 0x80 ? concat(Uint8Array.of(0), trimmed) : trimmed)
}

export function small(value: number): Bytes {
  return write(TAGS.integer, Uint8Array.of(value))
}

export function bitString(content: Uint8Array): Bytes {
  return write(TAGS.bits, Uint8Array.of(0), content)
}

export function octets(content: Uint8Array): Bytes {
  return write(TAGS.octets, content)
}

export function oid(hex: string): Bytes {
  return write(TAGS.oid, Uint8Array.fromHex(hex))
}

export const NOTHING: Bytes = write(TAGS.nothing)
