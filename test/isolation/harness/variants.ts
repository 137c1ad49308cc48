import type { IsolationCase } from './isolation-case.ts'

/** These are not in the short form, though they are the first of their row: they take long, and another path only inside V8. */
const LONG: ReadonlySet<string> = new Set(['C25a', 'M14', 'M17a', 'M17c', 'M17d'])

/** Those of the cases that the short form leaves out: of each row of the list of attacks it takes one. */
export function variantsOf(cases: readonly Pick<IsolationCase, 'id'>[]): ReadonlySet<string> {
  const taken = new Set<string>()
  const variants = cases.filter(({ id }) => {
    const row = id.replace(/[a-z]$/, '')
    if (LONG.has(id) || taken.has(row)) return true
    taken.add(row)
    return false
  })
  return new Set(variants.map(({ id }) => id))
}
