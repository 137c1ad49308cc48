/** Writes modules of WebAssembly, byte by byte (core specification 2.0, section 5.5). */

const PREAMBLE = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]

/** An unsigned number as LEB128. */
export function leb(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return [...bytes, rest]
}

export function section(id: number, content: readonly number[]): number[] {
  return [id, ...leb(content.length), ...content]
}

function text(name: string): number[] {
  return [...leb(name.length), ...Buffer.from(name)]
}

/** A module with a memory that hands its function `grow` to the import `a.b` when it starts, and then fails. */
export function escapingModule(): number[] {
  const types = section(1, [3, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 1, 0x70, 0, 0x60, 0, 0])
  const imports = section(2, [1, ...text('a'), ...text('b'), 0, 1])
  const grow = [0, 0x20, 0, 0x40, 0, 0x0b]
  const start = [0, 0xd2, 1, 0x10, 0, 0, 0x0b]
  return [
    ...PREAMBLE,
    ...types,
    ...imports,
    ...section(3, [2, 0, 2]),
    ...section(5, [1, 0, 1]),
    ...section(7, [1, ...text('grow'), 0, 1]),
    ...section(8, [2]),
    ...section(10, [2, ...[grow, start].flatMap((body) => [...leb(body.length), ...body])]),
  ]
}

export interface MemoryType {
  readonly initial: number
  readonly maximum?: number
  /** Bits besides the one that says that there is a maximum. */
  readonly flags?: number
}

/**
 * A module with memories of its own, of which the first is exported as `memory` if `exports` says so, and with the functions
 * `grow(pages)`, which grows the first memory from within, and `add(a, b)`.
 */
export function moduleOf(memories: readonly MemoryType[], exportsMemory = true): number[] {
  const types = section(1, [2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7f])
  const functions = section(3, memories.length > 0 ? [2, 0, 1] : [1, 1])
  const limits = memories.flatMap(({ initial, maximum, flags = 0 }) => [
    flags | (maximum === undefined ? 0 : 1),
    ...leb(initial),
    ...(maximum === undefined ? [] : leb(maximum)),
  ])
  const memory = memories.length === 0 ? [] : section(5, [...leb(memories.length), ...limits])
  const add = memories.length > 0 ? 1 : 0
  const exported = [
    [...text('add'), 0, add],
    ...(memories.length > 0 ? [[...text('grow'), 0, 0]] : []),
    ...(memories.length > 0 && exportsMemory ? [[...text('memory'), 2, 0]] : []),
  ]
  const growCode = [0, 0x20, 0, 0x40, 0, 0x0b]
  const addCode = [0, 0x20, 0, 0x20, 1, 0x6a, 0x0b]
  const bodies = memories.length > 0 ? [growCode, addCode] : [addCode]
  return [
    ...PREAMBLE,
    ...types,
    ...functions,
    ...memory,
    ...section(7, [exported.length, ...exported.flat()]),
    ...section(10, [bodies.length, ...bodies.flatMap((body) => [...leb(body.length), ...body])]),
  ]
}
