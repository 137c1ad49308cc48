/** The known name that somebody may have meant; undefined if none is near. Case, `-` and `_` do not matter. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  const plainGiven = plain(given)
  const distances = known.map((name) => ({ name, distance: editDistance(plainGiven, plain(name)) }))
  const nearest = distances.reduce((best, next) => (next.distance < best.distance ? next : best))
  return nearest.distance <= Math.max(1, Math.floor(plainGiven.length / 3)) ? nearest.name : undefined
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '').slice(0, 40)
}

/** How many letters have to be put in, left out or replaced (Levenshtein). */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
