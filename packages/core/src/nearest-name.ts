/**
 * The known name that a misspelt one was most likely meant to be; undefined if none is near. Case, `-` and `_` do not matter.
 * @param limit letters that may be wrong; default: a third of them, and two in any case
 */
export function nearestName(
  given: string,
  known: readonly string[],
  limit = Math.max(2, Math.floor(plain(given).length / 3)),
): string | undefined {
  const plainGiven = plain(given)
  const [nearest] = known
    .map((name) => ({ name, distance: editDistance(plainGiven, plain(name)) }))
    .toSorted((a, b) => a.distance - b.distance)
  return nearest !== undefined && nearest.distance <= limit ? nearest.name : undefined
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '').slice(0, 40)
}

/** How many letters have to be put in, left out, replaced or swapped with the next (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const isSwapped = i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j]
      const swapped = isSwapped ? before[j - 1]! + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1), swapped))
    }
    before = row
    row = next
  }
  return row[b.length]!
}
