import { type HeaderList, RESPONSE_HEADER_LIMITS } from '@carpool/core'
import {
  apply,
  arrayOf,
  arraySort,
  getOwnPropertyDescriptor,
  hasOwn,
  iteratorSymbol,
  jsonStringify,
  type List,
  ownKeys,
  regExpExec,
  SafeList,
  SafeMap,
  SafeTypeError,
  setOwn,
  stringCharCodeAt,
  stringSlice,
  stringToLowerCase,
} from '../../language/primordials.ts'
import { isIterable, matches, toText, valuesOf } from '../../language/values.ts'
import { customInspect } from '../console/inspect.ts'
import { type Pair, pairIterator } from '../pairs.ts'

export type HeadersInit = Headers | Iterable<Iterable<unknown>> | Record<string, unknown>

export let isHeaders: (value: unknown) => value is Headers
/** Headers with a list that the host gave, whose names are in lower case already. */
export let headersFromList: (list: HeaderList) => Headers
/** The inner list, a name and its value in turn, names in lower case. Do not change it. */
export let listOf: (headers: Headers) => List<string>
export let copyHeaders: (headers: Headers) => Headers
export let makeImmutable: (headers: Headers) => Headers
/** What `get` gives for a name in lower case. */
export let valueOfHeader: (headers: Headers, name: string) => string | null
/** Adds a content type if there is none. */
export let implyContentType: (headers: Headers, type: string) => void

const WIDE = /[^\0-\xff]/

export class Headers {
  /** Name, value, name, value: cheaper to make than a map, and a message has few headers. */
  #list: List<string> = new SafeList()
  #immutable = false
  #sorted: List<Pair> | undefined

  static {
    isHeaders = (value): value is Headers => typeof value === 'object' && value !== null && #list in value
    listOf = (headers) => headers.#list
    headersFromList = (list) => {
      const headers = new Headers()
      const flat = headers.#list
      for (let index = 0; index < list.length; index++) {
        const pair = list[index]!
        flat[index * 2] = pair[0]
        flat[index * 2 + 1] = pair[1]
      }
      return headers
    }
    copyHeaders = (other) => {
      const headers = new Headers()
      headers.#list = copyList(other.#list)
      return headers
    }
    makeImmutable = (headers) => {
      headers.#immutable = true
      return headers
    }
    valueOfHeader = (headers, name) => headers.#get(name)
    implyContentType = (headers, type) => {
      if (headers.#indexOf('content-type') === -1) headers.#push('content-type', type)
    }
  }

  constructor(init?: HeadersInit | null) {
    if (init !== undefined) this.#fill(init)
  }

  append(name: unknown, value: unknown): void {
    this.#append(name, value)
  }

  delete(name: unknown): void {
    const key = headerName(name)
    this.#change()
    this.#list = this.#without(key)
  }

  get(name: unknown): string | null {
    return this.#get(headerName(name))
  }

  getSetCookie(): string[] {
    const list = this.#list
    const values = new SafeList<string>()
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === 'set-cookie') values[values.length] = list[index + 1]!
    }
    return arrayOf(values)
  }

  has(name: unknown): boolean {
    return this.#indexOf(headerName(name)) !== -1
  }

  set(name: unknown, value: unknown): void {
    const key = headerName(name)
    const text = headerValue(value, key)
    this.#change()
    const index = this.#indexOf(key)
    if (index === -1) {
      this.#push(key, text)
    } else {
      // The first one keeps its place; others of the name go.
      this.#list[index + 1] = text
      this.#list = this.#without(key, index)
    }
  }

  forEach(callback: (value: string, name: string, headers: Headers) => unknown, self?: unknown): void {
    if (typeof callback !== 'function') throw new SafeTypeError('forEach needs a function.')
    for (let index = 0; index < this.#pairs().length; index++) {
      const pair = this.#pairs()[index]!
      apply(callback, self, [pair[1], pair[0], this])
    }
  }

  entries(): IteratorObject<[string, string]> {
    return pairIterator('Headers', () => this.#pairs(), 'entries')
  }

  keys(): IteratorObject<string> {
    return pairIterator('Headers', () => this.#pairs(), 'keys')
  }

  values(): IteratorObject<string> {
    return pairIterator('Headers', () => this.#pairs(), 'values')
  }

  [Symbol.iterator](): IteratorObject<[string, string]> {
    return pairIterator('Headers', () => this.#pairs(), 'entries')
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    const pairs = this.#pairs()
    const shown = {}
    for (let index = 0; index < pairs.length; index++) setOwn(shown, pairs[index]![0], pairs[index]![1])
    return `Headers ${inspect(shown)}`
  }

  get [Symbol.toStringTag](): string {
    return 'Headers'
  }

  #fill(init: unknown): void {
    if ((typeof init !== 'object' && typeof init !== 'function') || init === null) {
      throw new SafeTypeError('Headers needs an object or pairs.')
    }
    if (isHeaders(init) && !hasOwn(init, iteratorSymbol)) {
      this.#list = copyList(init.#list)
      return
    }
    if (!isIterable(init)) {
      // All is read before any of it is looked at, in the order that WebIDL says.
      const pairs = new SafeList<Pair>()
      const keys = ownKeys(init)
      for (let index = 0; index < keys.length; index++) {
        const key = keys[index]!
        if (getOwnPropertyDescriptor(init, key)?.enumerable !== true) continue
        const name = toText(key)
        // No byte can stand for it, so it is refused before its value is read.
        if (matches(name, WIDE)) headerName(name)
        const value = toText((init as Record<string, unknown>)[name])
        if (matches(value, WIDE)) headerValue(value, name)
        pairs[pairs.length] = [name, value]
      }
      for (let index = 0; index < pairs.length; index++) this.#append(pairs[index]![0], pairs[index]![1])
      return
    }
    const items = valuesOf(init as Iterable<Iterable<unknown>>)
    for (let index = 0; index < items.length; index++) {
      const pair = valuesOf(items[index]!)
      if (pair.length !== 2) throw new SafeTypeError('Headers needs pairs of a name and a value.')
      this.#append(pair[0], pair[1])
    }
  }

  #append(name: unknown, value: unknown): void {
    const key = headerName(name)
    const text = headerValue(value, key)
    this.#change()
    this.#push(key, text)
  }

  #get(key: string): string | null {
    const list = this.#list
    let found: string | null = null
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === key) found = found === null ? list[index + 1]! : `${found}, ${list[index + 1]}`
    }
    return found
  }

  #change(): void {
    if (this.#immutable) throw new SafeTypeError('These headers are immutable.')
    this.#sorted = undefined
  }

  #push(name: string, value: string): void {
    const { length } = this.#list
    this.#list[length] = name
    this.#list[length + 1] = value
  }

  #indexOf(name: string): number {
    const list = this.#list
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === name) return index
    }
    return -1
  }

  #without(name: string, but = -1): List<string> {
    const list = this.#list
    const rest = new SafeList<string>()
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === name && index !== but) continue
      rest[rest.length] = list[index]!
      rest[rest.length] = list[index + 1]!
    }
    return rest
  }

  /** What iteration gives: names sorted and joined, but for `set-cookie`. */
  #pairs(): List<Pair> {
    if (this.#sorted !== undefined) return this.#sorted
    const list = this.#list
    const pairs = new SafeList<Pair>()
    const places = new SafeMap<string, Pair>()
    for (let index = 0; index < list.length; index += 2) {
      const name = list[index]!
      const value = list[index + 1]!
      const place = name === 'set-cookie' ? undefined : places.get(name)
      if (place === undefined) {
        const pair: Pair = [name, value]
        pairs[pairs.length] = pair
        places.set(name, pair)
      } else {
        place[1] += `, ${value}`
      }
    }
    this.#sorted = arraySort(pairs, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))
    return this.#sorted
  }
}

function copyList(list: List<string>): List<string> {
  const copy = new SafeList<string>()
  for (let index = 0; index < list.length; index++) copy[index] = list[index]!
  return copy
}

/** What is wrong with the number or the size of the headers of a response; undefined if nothing is. */
export function headersProblem(list: List<string>): string | undefined {
  const { count, bytes } = RESPONSE_HEADER_LIMITS
  if (list.length / 2 > count) return `The response has ${list.length / 2} headers; the limit is ${count}.`
  let total = 0
  // Every character of a name or a value is a byte.
  for (let index = 0; index < list.length; index++) total += list[index]!.length
  return total > bytes ? `The response headers have ${total} bytes; the limit is ${bytes}.` : undefined
}

/** The headers as the JSON text of a HeaderList. Names are tokens, which need no escapes. */
export function headersJson(list: List<string>): string {
  let json = '['
  for (let index = 0; index < list.length; index += 2) {
    json += `${index === 0 ? '["' : ',["'}${list[index]}",${jsonStringify(list[index + 1])}]`
  }
  return `${json}]`
}

const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/
/** What a value may not have, and white space at its ends. */
const UNUSUAL = /[\0\n\r]|[^\0-\xff]|^[\t ]|[\t ]$/
const NAMES_MAX = 256

const known = new SafeMap<string, string>()

/** Checks a header name and gives it in lower case. @throws TypeError */
export function headerName(name: unknown): string {
  const text = toText(name)
  const seen = known.get(text)
  if (seen !== undefined) return seen
  if (regExpExec(TOKEN, text) === null) throw new SafeTypeError(`${shown(text)} is no header name.`)
  const lower = stringToLowerCase(text)
  // Most functions use the same few names again and again.
  if (known.size < NAMES_MAX) known.set(text, lower)
  return lower
}

/** Checks a header value and strips white space at its ends. @throws TypeError */
export function headerValue(value: unknown, name: string): string {
  const text = toText(value)
  if (regExpExec(UNUSUAL, text) === null) return text
  let start = 0
  let end = text.length
  while (start < end && isSpace(stringCharCodeAt(text, start))) start++
  while (end > start && isSpace(stringCharCodeAt(text, end - 1))) end--
  const stripped = stringSlice(text, start, end)
  if (regExpExec(/[\0\n\r]|[^\0-\xff]/, stripped) === null) return stripped
  throw new SafeTypeError(`The value of the header ${name} has a line break, a zero or a character above U+00FF.`)
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x09 || unit === 0x0a || unit === 0x0d
}

function shown(text: string): string {
  return `"${text.length > 100 ? `${stringSlice(text, 0, 100)}…` : text}"`
}
