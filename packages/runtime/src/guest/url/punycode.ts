import {
  floor,
  fromCharCode,
  fromCodePoint,
  type List,
  min,
  numberIsNaN,
  parseInteger,
  SafeList,
  stringCharAt,
  stringCharCodeAt,
  stringCodePointAt,
  stringLastIndexOf,
} from '../primordials.ts'

const BASE = 36
const T_MIN = 1
const T_MAX = 26
const SKEW = 38
const DAMP = 700
const FIRST_N = 128
const FIRST_BIAS = 72
const INT_MAX = 0x7fffffff

function adapt(delta: number, points: number, first: boolean): number {
  let rest = first ? floor(delta / DAMP) : delta >> 1
  rest += floor(rest / points)
  let k = 0
  for (; rest > ((BASE - T_MIN) * T_MAX) >> 1; k += BASE) rest = floor(rest / (BASE - T_MIN))
  return k + floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW))
}

function threshold(k: number, bias: number): number {
  return k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias
}

function digit(value: number): string {
  return fromCharCode(value < 26 ? value + 0x61 : value - 26 + 0x30)
}

function pointsOf(text: string): List<number> {
  const points = new SafeList<number>()
  for (let index = 0; index < text.length; ) {
    const point = stringCodePointAt(text, index)!
    points[points.length] = point
    index += point > 0xffff ? 2 : 1
  }
  return points
}

/** Encodes a label as RFC 3492 says, without the "xn--". */
export function encodePunycode(label: string): string {
  const points = pointsOf(label)
  let output = ''
  for (let index = 0; index < points.length; index++) {
    if (points[index]! < 0x80) output += fromCharCode(points[index]!)
  }
  const basic = output.length
  if (basic > 0) output += '-'
  let n = FIRST_N
  let delta = 0
  let bias = FIRST_BIAS
  for (let handled = basic; handled < points.length; ) {
    let next = INT_MAX
    for (let index = 0; index < points.length; index++) {
      if (points[index]! >= n) next = min(next, points[index]!)
    }
    delta += (next - n) * (handled + 1)
    n = next
    for (let index = 0; index < points.length; index++) {
      const point = points[index]!
      if (point < n) delta++
      if (point !== n) continue
      let q = delta
      for (let k = BASE; ; k += BASE) {
        const t = threshold(k, bias)
        if (q < t) break
        output += digit(t + ((q - t) % (BASE - t)))
        q = floor((q - t) / (BASE - t))
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
  const split = stringLastIndexOf(text, '-')
  const points = new SafeList<number>()
  for (let index = 0; index < split; index++) points[index] = stringCharCodeAt(text, index)
  let n = FIRST_N
  let i = 0
  let bias = FIRST_BIAS
  for (let index = split > 0 ? split + 1 : 0; index < text.length; ) {
    const old = i
    let weight = 1
    for (let k = BASE; ; k += BASE) {
      const value = parseInteger(stringCharAt(text, index), 36)
      index++
      if (numberIsNaN(value)) return undefined
      // Base 36 reads "0-9a-z" as 0 to 35; punycode has the letters first.
      const digitValue = value < 10 ? value + 26 : value - 10
      i += digitValue * weight
      if (i > INT_MAX) return undefined
      const t = threshold(k, bias)
      if (digitValue < t) break
      weight *= BASE - t
    }
    bias = adapt(i - old, points.length + 1, old === 0)
    n += floor(i / (points.length + 1))
    i %= points.length + 1
    if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) return undefined
    insert(points, i++, n)
  }
  let decoded = ''
  for (let index = 0; index < points.length; index++) decoded += fromCodePoint(points[index]!)
  return decoded
}

function insert(points: List<number>, at: number, point: number): void {
  for (let index = points.length; index > at; index--) points[index] = points[index - 1]!
  points[at] = point
}
