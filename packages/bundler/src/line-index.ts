export interface Place {
  /** From 0. */
  readonly line: number
  readonly column: number
}

/** Tells where in a text an offset is. */
export function lineIndex(text: string): (offset: number) => Place {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    let line = 0
    let behind = starts.length
    while (behind - line > 1) {
      const middle = (line + behind) >> 1
      if (starts[middle]! <= offset) line = middle
      else behind = middle
    }
    return { line, column: offset - starts[line]! }
  }
}
