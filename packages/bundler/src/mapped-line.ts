import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec'

/** A line of code with its part of the source map, so that lines can be moved and edited. */
export interface MappedLine {
  readonly text: string
  readonly segments: readonly SourceMapSegment[]
}

export function toMappedLines(code: string, mappings: string): MappedLine[] {
  const segments = decode(mappings)
  return code.split('\n').map((text, index) => ({ text, segments: segments[index] ?? [] }))
}

/** A line that comes from no source. */
export function plainLine(text: string): MappedLine {
  return { text, segments: [] }
}

/** Replaces `from` (inclusive) to `to` (exclusive), moving what is mapped behind it. */
export function spliceLine({ text, segments }: MappedLine, from: number, to: number, inserted: string): MappedLine {
  const shift = inserted.length - (to - from)
  const moved = segments.map((segment) => (segment[0] < to ? segment : (segment.with(0, segment[0] + shift) as SourceMapSegment)))
  return { text: text.slice(0, from) + inserted + text.slice(to), segments: moved }
}

export function joinMappedLines(lines: readonly MappedLine[]): { readonly code: string; readonly mappings: string } {
  return { code: lines.map((line) => line.text).join('\n'), mappings: encode(lines.map((line) => [...line.segments])) }
}
