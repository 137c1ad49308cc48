import type { IsolationCase } from '../harness/isolation-case.ts'

const LIMITS = { cpuMs: 200, wallMs: 1_000, memoryMb: 64 }
/** How a flood may end. */
export const ENDED = { code: /^(?:cpu-exceeded|timeout|memory-exceeded)$/ }
/** What a host may take more than before while its calls are flooded, in MiB. */
const MAX_GROWTH_MB = 300

/** Floods until a limit ends it. */
export function floods(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return {
    id,
    group: 'flood',
    title,
    verdict: 'K',
    billed: 'cap',
    limits: LIMITS,
    expect: ENDED,
    handler,
    check: checkGrowth,
    ...more,
  }
}

/** Floods for a while, and answers. */
export function bursts(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  const expect = { status: 200, body: 'fine' }
  return floods(id, title, `${handler}; return new Response('fine')`, {
    verdict: 'R',
    billed: 'full',
    expect,
    limits: { cpuMs: 5_000, wallMs: 20_000, memoryMb: 64 },
    ...more,
  })
}

/** Checks that it did not fill the host. */
export const checkGrowth: NonNullable<IsolationCase['check']> = ({ t }, { growthMb = 0 }) => {
  t.ok(growthMb < MAX_GROWTH_MB, `the host took ${Math.round(growthMb)} MiB more at most`)
}
