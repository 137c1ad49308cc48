/** The known name that a misspelt one was most likely meant to be; undefined if none is near. Case, `-` and `_` do not matter. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  const plainGiven = plain(given)
  const limit = Math.max(2, Math.floor(plainGiven.length / 3))
  const [nearest] = known
    .map((name) => ({ name, distance: editDistance(plainGiven, plain(name)) }))
    .toSorted((a, b) => a.distance - b.distance)
  return nearest !== undefined && nearest.distance <= limit ? nearest.name : undefined
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '').slice(0, 40)
}

/** How many letters have to be put in, left out or replaced (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
