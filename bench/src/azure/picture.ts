import type { Point } from './series.ts'

export interface Panel {
  readonly title: string
  readonly points: readonly Point[]
  readonly color: string
  /** `steps`: the value holds until the next point. */
  readonly shape: 'line' | 'steps'
}

export interface Picture {
  readonly title: string
  /** Below the panels. */
  readonly caption: string
  /** One below the other, over the same time. */
  readonly panels: readonly Panel[]
}

const WIDTH = 960
const PANEL_HEIGHT = 130
const GAP = 34
const LEFT = 52
const RIGHT = 12
const TOP = 40
const BOTTOM = 58
const MOST_MARKS = 10
const STEPS = [1, 2, 5] as const

/** Panels with curves over time, as an SVG document. */
export function drawPicture({ title, caption, panels }: Picture): string {
  const times = panels.flatMap(({ points }) => points.map(({ atMs }) => atMs))
  const [fromMs, toMs] = [Math.min(...times), Math.max(...times)]
  const x = (atMs: number): number => LEFT + ((atMs - fromMs) / (toMs - fromMs || 1)) * (WIDTH - LEFT - RIGHT)
  const height = TOP + panels.length * (PANEL_HEIGHT + GAP) + BOTTOM
  const bottom = TOP + panels.length * (PANEL_HEIGHT + GAP) - GAP + 16
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(LEFT, 20, title, 'font-size="15"'),
    ...panels.map((panel, index) => drawPanel(panel, TOP + index * (PANEL_HEIGHT + GAP), x)),
    ...marks(0, (toMs - fromMs) / 1000, MOST_MARKS).map((seconds) =>
      text(x(fromMs + seconds * 1000), bottom, `${seconds} s`, 'text-anchor="middle" fill="#555"'),
    ),
    text(LEFT, bottom + 28, caption, 'fill="#555"'),
    '</svg>\n',
  ].join('\n')
}

function drawPanel({ title, points, color, shape }: Panel, top: number, x: (atMs: number) => number): string {
  const most = Math.max(0, ...points.map(({ value }) => value))
  const scale = marks(0, most, 4)
  const ceiling = Math.max(most, scale.at(-1) ?? 0) * 1.05 || 1
  const y = (value: number): number => top + PANEL_HEIGHT - (value / ceiling) * PANEL_HEIGHT
  return [
    ...scale.flatMap((value) => [
      `<path d="M${LEFT} ${round(y(value))}H${WIDTH - RIGHT}" stroke="#ddd"/>`,
      text(LEFT - 6, y(value) + 4, String(value), 'text-anchor="end" fill="#555"'),
    ]),
    text(LEFT, top - 6, title, `fill="${color}"`),
    `<path d="${curve(points, x, y, shape)}" fill="none" stroke="${color}" stroke-width="1.5"/>`,
  ].join('\n')
}

function curve(
  points: readonly Point[],
  x: (atMs: number) => number,
  y: (value: number) => number,
  shape: Panel['shape'],
): string {
  return points
    .map(({ atMs, value }, index) => {
      const [left, up] = [round(x(atMs)), round(y(value))]
      if (index === 0) return `M${left} ${up}`
      return shape === 'steps' ? `H${left}V${up}` : `L${left} ${up}`
    })
    .join('')
}

/** Round values from one to another, at most `most` and one more. */
export function marks(from: number, to: number, most: number): number[] {
  const span = to - from
  if (!(span > 0)) return [from]
  const power = 10 ** Math.floor(Math.log10(span / most))
  const step = [...STEPS.map((factor) => factor * power), 10 * power].find((size) => span / size <= most) ?? span
  const count = Math.floor(span / step + 1e-9)
  // Through its own text, or 3 * 0.1 shows all its digits.
  return Array.from({ length: count + 1 }, (_, index) => Number((from + index * step).toPrecision(12)))
}

function text(left: number, up: number, content: string, attributes: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${round(left)}" y="${round(up)}" ${attributes}>${escaped}</text>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
