import type { IsolationCase } from '../harness/isolation-case.ts'

/** What modules of Node.js take to load counts as well. */
export const LIMITS = { cpuMs: 200, wallMs: 5_000, memoryMb: 64 }

/** A function with modules of Node.js, deployed by the command, which bundles it. `scope` is the module scope, imports first. */
export function moduleOf(scope: string, handler: string): string {
  return `${scope}
let callsSeen = 0
export default { async fetch(request, env, ctx) {
  const { pathname } = new URL(request.url)
  if (pathname.endsWith('/again')) return new Response('seen ' + callsSeen)
  if (pathname.endsWith('/end')) for (;;);
  callsSeen++;
  ${handler}
} }
`
}

/** Frames of Node.js' modules in stacks: they are part of the bundle, and named as in Node.js. */
export const FRAMES = /^node(?::internal|_modules)$/

/** Ends at its CPU limit, with its isolate. */
export function burns(id: string, title: string, more: Partial<IsolationCase>): IsolationCase {
  const expect = { status: 502, code: 'cpu-exceeded' }
  return { id, group: 'CPU', title, verdict: 'K', billed: 'cap', limits: LIMITS, expect, ...more }
}

/** A call that says what it found that should not be there. */
export function finds(
  id: string,
  title: string,
  scope: string,
  handler: string,
  more: Partial<IsolationCase> = {},
): IsolationCase {
  return {
    id,
    group: 'escape',
    title,
    verdict: 'OK',
    billed: 'full',
    limits: { ...LIMITS, cpuMs: 5_000, wallMs: 20_000 },
    files: moduleOf(scope, `const found = []; ${handler}; return new Response(JSON.stringify(found))`),
    expect: { body: '[]' },
    ...more,
  }
}
