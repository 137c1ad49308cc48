/** The name that a misspelt one was most likely meant to be; undefined if none is near. */
export function nearestName(given: string, names: readonly string[]): string | undefined {
  const limit = Math.max(2, Math.floor(given.length / 3))
  const ranked = names
    .map((name) => ({ name, distance: distance(given.toLowerCase(), name.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best !== undefined && best.distance <= limit ? best.name : undefined
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j += 1) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
