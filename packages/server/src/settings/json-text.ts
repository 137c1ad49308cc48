/** What is wrong with a JSON text, and where; lines and columns count from 1. */
export class JsonFault extends Error {
  readonly line: number
  readonly column: number

  constructor(message: string, text: string, index: number) {
    super(message)
    const before = text.slice(0, index).split('\n')
    this.line = before.length
    this.column = (before.at(-1)?.length ?? 0) + 1
  }
}

const BLANK = /[ \t\r\n]*/y
/** What stands between quotes is only where it ends: `JSON.parse` knows which characters may. */
const SCALAR = /"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
/** Deeper than any value that a setting has. */
const MAX_DEPTH = 16

/**
 * Reads JSON as `JSON.parse` does, but says for every fault where it is, and takes a key that stands twice for one: the engine's
 * messages give a place for some faults only.
 * @throws JsonFault
 */
export function parseJson(text: string): unknown {
  let index = text.startsWith('\uFEFF') ? 1 : 0

  const skipBlank = (): void => {
    BLANK.lastIndex = index
    index += BLANK.exec(text)?.[0].length ?? 0
  }
  const fail = (expected: string): never => {
    const found = text[index]
    if (found === '/' || found === '#') throw new JsonFault('JSON has no comments', text, index)
    throw new JsonFault(
      `expected ${expected}, not ${found === undefined ? 'the end of the file' : JSON.stringify(found)}`,
      text,
      index,
    )
  }
  /** Goes past one of the characters, and blanks around it. */
  const take = (characters: string, expected: string): string => {
    skipBlank()
    const found = text[index] ?? ''
    if (found === '' || !characters.includes(found)) fail(expected)
    index++
    skipBlank()
    return found
  }
  const scalar = (expected: string): unknown => {
    SCALAR.lastIndex = index
    const token = SCALAR.exec(text)?.[0]
    if (token === undefined) {
      if (text[index] === '"') throw new JsonFault('the text that begins here has no end', text, index)
      return fail(expected)
    }
    try {
      const value: unknown = JSON.parse(token)
      index += token.length
      return value
    } catch {
      throw new JsonFault('the text has a character that must be escaped, or an escape that is none', text, index)
    }
  }
  const array = (depth: number): unknown[] => {
    const items: unknown[] = []
    take('[', '"["')
    if (text[index] === ']') {
      index++
      return items
    }
    do items.push(value(depth + 1))
    while (take(',]', '"," or "]"') === ',')
    return items
  }
  const object = (depth: number): object => {
    const entries = new Map<string, unknown>()
    take('{', '"{"')
    if (text[index] === '}') {
      index++
      return {}
    }
    do {
      if (text[index] !== '"') fail('a key in double quotes')
      const start = index
      const key = String(scalar('a key in double quotes'))
      if (entries.has(key)) throw new JsonFault(`the key ${JSON.stringify(key)} stands there twice`, text, start)
      take(':', '":"')
      entries.set(key, value(depth + 1))
    } while (take(',}', '"," or "}"') === ',')
    return Object.fromEntries(entries)
  }
  const value = (depth: number): unknown => {
    if (depth > MAX_DEPTH) throw new JsonFault(`values stand in each other more than ${MAX_DEPTH} deep`, text, index)
    skipBlank()
    if (text[index] === '{') return object(depth)
    if (text[index] === '[') return array(depth)
    return scalar('a value')
  }

  const result = value(0)
  skipBlank()
  if (index < text.length) fail('the end of the file')
  return result
}
