import type { IsolationCase } from './isolation-case.ts'

/** So many of a row of the list of attacks are in the short form. */
const MOST_OF_ROW = 2

/** These are not, and leave room for others of their rows: they take long, and another path than those only inside V8. */
const LONG: ReadonlySet<string> = new Set(
  [
    'C01b C02b C04b C05b C05d C06b C06c C06d C07b C07c C09c C09e C09f C14c C14f C14h C17c C17d C17h C17j C22c C22d C22f C23d C23e',
    'C24b C24c C24f C24g C24j C25a C25d C26e C26h M19b M19c M19g M19j M19n M19o',
    'E12b E12d E12e E12f E12g E12l E13d E26b E26c E26d E26g E26i E26m',
    'F01f F04b F04c M01b M01c M01e M01f M01g M02e M03b M03c M03d M03e M03j M07b M14 M16b M16d M16e',
    'M17a M17c M17d M17f M17g M17i M17k M17m M17n M17o M17q M17s M17t M17u M17v M17w',
  ].flatMap((ids) => ids.split(' ')),
)

/** Those of the cases that the short form leaves out: each is a variant of one that is in both forms. */
export function variantsOf(cases: readonly IsolationCase[]): ReadonlySet<string> {
  const taken = new Map<string, number>()
  const variants = cases.filter(({ id }) => {
    const row = id.replace(/[a-z]$/, '')
    const before = taken.get(row) ?? 0
    if (LONG.has(id) || before === MOST_OF_ROW) return true
    taken.set(row, before + 1)
    return false
  })
  return new Set(variants.map(({ id }) => id))
}
