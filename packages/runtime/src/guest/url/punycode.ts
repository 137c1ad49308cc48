const BASE = 36
const T_MIN = 1
const T_MAX = 26
const SKEW = 38
const DAMP = 700
const FIRST_N = 128
const FIRST_BIAS = 72
const INT_MAX = 0x7fffffff

function adapt(delta: number, points: number, first: boolean): number {
  let rest = first ? Math.floor(delta / DAMP) : delta >> 1
  rest += Math.floor(rest / points)
  let k = 0
  for (; rest > ((BASE - T_MIN) * T_MAX) >> 1; k += BASE) rest = Math.floor(rest / (BASE - T_MIN))
  return k + Math.floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW))
}

function threshold(k: number, bias: number): number {
  return k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias
}

function digit(value: number): string {
  return String.fromCharCode(value < 26 ? value + 0x61 : value - 26 + 0x30)
}

/** Encodes a label as RFC 3492 says, without the "xn--". */
export function encodePunycode(label: string): string {
  const points = Array.from(label, (character) => character.codePointAt(0)!)
  let output = points
    .filter((point) => point < 0x80)
    .map((point) => String.fromCharCode(point))
    .join('')
  const basic = output.length
  if (basic > 0) output += '-'
  let n = FIRST_N
  let delta = 0
  let bias = FIRST_BIAS
  for (let handled = basic; handled < points.length; ) {
    const next = Math.min(...points.filter((point) => point >= n))
    delta += (next - n) * (handled + 1)
    n = next
    for (const point of points) {
      if (point < n) delta++
      if (point !== n) continue
      let q = delta
      for (let k = BASE; ; k += BASE) {
        const t = threshold(k, bias)
        if (q < t) break
        output += digit(t + ((q - t) % (BASE - t)))
        q = Math.floor((q - t) / (BASE - t))
      }
      output += digit(q)
      bias = adapt(delta, handled + 1, handled === basic)
      delta = 0
      handled++
    }
    delta++
    n++
  }
  return output
}

/** Decodes what follows "xn--"; undefined if it is not valid. */
export function decodePunycode(text: string): string | undefined {
  const split = text.lastIndexOf('-')
  const points = split > 0 ? Array.from(text.slice(0, split), (character) => character.charCodeAt(0)) : []
  let n = FIRST_N
  let i = 0
  let bias = FIRST_BIAS
  for (let index = split > 0 ? split + 1 : 0; index < text.length; ) {
    const old = i
    let weight = 1
    for (let k = BASE; ; k += BASE) {
      const value = Number.parseInt(text[index] ?? '', 36)
      index++
      if (Number.isNaN(value)) return undefined
      // Base 36 reads "0-9a-z" as 0 to 35; punycode has the letters first.
      const digitValue = value < 10 ? value + 26 : value - 10
      i += digitValue * weight
      if (i > INT_MAX) return undefined
      const t = threshold(k, bias)
      if (digitValue < t) break
      weight *= BASE - t
    }
    bias = adapt(i - old, points.length + 1, old === 0)
    n += Math.floor(i / (points.length + 1))
    i %= points.length + 1
    if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) return undefined
    points.splice(i++, 0, n)
  }
  return String.fromCodePoint(...points)
}
