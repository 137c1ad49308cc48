import { CarpoolError } from '@carpool/core'
import type { Location, Message } from 'esbuild'
import { dirname, sep } from 'node:path'
import { labelPath } from './label-path.ts'

const MOST_SHOWN = 10
const MOST_IMPORTERS = 5
/** Of a line of code, around what is wrong. */
const FRAME_CHARS = 100

/**
 * A `bundle-failed` that lists the bundler's errors as `file:line:column: text`, lines and columns from 1, each with its line.
 */
export function toCarpoolError(errors: readonly Message[], folder: string): CarpoolError {
  const sorted = errors.toSorted((one, other) => compareText(orderOf(one, folder), orderOf(other, folder)))
  // What several modules import and there is not is one error.
  const byText = Object.groupBy(sorted, (error) => `of ${isUnresolved(error.text) ? error.text : errors.indexOf(error)}`)
  const groups = Object.values(byText).map((group) => describe(group!, folder))
  const shown = groups.slice(0, MOST_SHOWN)
  const more = groups.length - shown.length
  return new CarpoolError('bundle-failed', [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
}

/** The bundler reads modules as they come. The function's own stand in front. */
function orderOf({ location }: Message, folder: string): string {
  if (location === null) return ''
  const label = labelPath(location.file, folder)
  const numbers = [location.line, location.column].map((number) => `${number}`.padStart(9, '0'))
  return [label.includes('node_modules/') ? 'b' : 'a', label, ...numbers].join(' ')
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

function isUnresolved(text: string): boolean {
  return /^Could not resolve "[^.]/.test(text)
}

function describe([first, ...others]: readonly Message[], folder: string): string {
  const { text, location } = first!
  const importers = others.flatMap((other) => (other.location === null ? [] : [placeOf(other.location, folder)]))
  const shown = importers.slice(0, MOST_IMPORTERS)
  const rest = importers.length > shown.length ? ` and ${importers.length - shown.length} more` : ''
  const also = shown.length === 0 ? '' : `; also imported by ${shown.join(', ')}${rest}`
  const what = `${withoutPaths(explain(text), folder)}${also}`
  return location === null ? what : `${placeOf(location, folder)}: ${what}${frameOf(location)}`
}

function placeOf({ file, line, column, lineText }: Location, folder: string): string {
  return `${labelPath(file, folder)}:${line}:${charsOf(lineText, column) + 1}`
}

/** The bundler counts bytes. */
function charsOf(text: string, bytes: number): number {
  return Buffer.from(text).subarray(0, bytes).toString().length
}

/** The line, with a mark below what is wrong. */
function frameOf({ line, column, length, lineText }: Location): string {
  if (lineText.trim() === '') return ''
  const from = charsOf(lineText, column)
  const to = charsOf(lineText, column + length)
  const start = Math.max(0, Math.min(from - FRAME_CHARS / 2, lineText.length - FRAME_CHARS))
  const text = lineText.slice(start, start + FRAME_CHARS)
  const before = text.slice(0, from - start).replace(/[^\t]/g, ' ')
  const mark = '^'.repeat(Math.max(1, Math.min(to, start + FRAME_CHARS) - from))
  const margin = ' '.repeat(`${line}`.length)
  return `\n  ${line} | ${text}\n  ${margin} | ${before}${mark}`
}

/** No path of this machine stands in a message: it may be read by others. */
function withoutPaths(text: string, folder: string): string {
  return text.replaceAll(folder + sep, '').replaceAll(dirname(folder) + sep, '../')
}

function explain(text: string): string {
  const module = /^Could not resolve "(node:[^"]+)"$/.exec(text)?.[1]
  if (module !== undefined) return `${module} is no module of Node.js`
  const [, name, part] = /^No matching export in "node-names:([^"]+)" for import "([^"]+)"$/.exec(text) ?? []
  return name === undefined ? text : `node:${name} has no export "${part}"`
}
