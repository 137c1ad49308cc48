import type { Group, IsolationCase } from '../harness/isolation-case.ts'

/** Makes the cases of a group: refused and billed in full, unless the group or the case says otherwise. */
export function casesOf(
  group: Group,
  defaults: Partial<IsolationCase> = {},
): (id: string, title: string, more: Partial<IsolationCase>) => IsolationCase {
  return (id, title, more) => ({ id, group, title, verdict: 'R', billed: 'full', ...defaults, ...more })
}
