import type { Call } from '../../lib/load/load-order.ts'

/** The beginning of an entry, as the function logged it. */
export interface Start {
  /** Number of the call, which is that of its path. */
  readonly call: number
  /** Whole ms of the epoch. */
  readonly atMs: number
}

/**
 * Reads lines of two numbers: call and time. @throws Error if there is another line: a start that is not understood must not be
 * missed
 */
export function parseStarts(lines: readonly string[]): Start[] {
  return lines.map((line) => {
    const [, call, atMs] = /^(\d+) (\d+)$/.exec(line) ?? []
    if (call === undefined || atMs === undefined) throw new Error(`The function logged ${JSON.stringify(line)}.`)
    return { call: Number(call), atMs: Number(atMs) }
  })
}

/** For each entry that began after its client had left: how long after, in ms. */
export function entriesOfDeparted(calls: readonly Call[], starts: readonly Start[]): number[] {
  const leftMs = new Map(calls.filter(({ failure }) => failure === 'left').map(({ path, endedMs }) => [path, endedMs]))
  return starts.map(({ call, atMs }) => atMs - (leftMs.get(call) ?? Number.POSITIVE_INFINITY)).filter((ms) => ms > 0)
}
