import type { FunctionLimits } from '@carpool/core'

/** A function that is legal JavaScript and bad for the process that runs it. */
export interface Offender {
  /** Its name on the server. */
  readonly name: string
  readonly title: string
  /** Body of its handler. */
  readonly body: string
  readonly limits: Partial<FunctionLimits>
}

const limits = { memoryMb: 64 }

/** The four killers of processes of the design's table, and the one that nothing can interrupt: V8 looks at every index. */
export const KILLERS: readonly Offender[] = [
  { name: 'array', title: 'new Array(1e9).fill(0)', body: 'new Array(1e9).fill(0)', limits },
  { name: 'bigint', title: 'BigInt x = x * x', body: 'let x = 3n; for (;;) x = x * x', limits },
  { name: 'chunks', title: 'arrays of 1,000', body: 'const a = []; for (;;) a.push(new Array(1000).fill(1))', limits },
  { name: 'map', title: 'growing Map', body: 'const m = new Map(); for (let i = 0; ; ) m.set(i++, {})', limits },
  { name: 'includes', title: 'includes of 2**53', body: '[].includes.call({ length: 2 ** 53 - 1 }, 1)', limits },
]

/** What is ended cleanly at a limit of its own, and harms nobody's process. */
export const CLEAN_ENDS: ReadonlySet<string> = new Set(['memory-exceeded', 'cpu-exceeded'])
