import type { HeaderList } from '@carpool/core'
import { customInspect } from '../console/inspect.ts'
import { pairIterator, type Pairs } from '../pair-iterator.ts'
import { apply, arraySlice, arraySort, isArray, jsonStringify, objectKeys, SafeMap, SafeTypeError } from '../primordials.ts'
import { headerName, headerValue } from './header-text.ts'

export type HeadersInit = Headers | Iterable<Iterable<unknown>> | Record<string, unknown>

export let isHeaders: (value: unknown) => value is Headers
/** Headers with a list that the host gave, whose names are in lower case already. */
export let headersFromList: (list: HeaderList) => Headers
/** The inner list, a name and its value in turn, names in lower case. Do not change it. */
export let listOf: (headers: Headers) => readonly string[]
export let copyHeaders: (headers: Headers) => Headers
export let makeImmutable: (headers: Headers) => Headers

export class Headers {
  /** Name, value, name, value: cheaper to make than a map, and a message has few headers. */
  #list: string[] = []
  #immutable = false
  #sorted: Pairs | undefined

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
      headers.#list = arraySlice(other.#list)
      return headers
    }
    makeImmutable = (headers) => {
      headers.#immutable = true
      return headers
    }
  }

  constructor(init?: HeadersInit | null) {
    if (init !== undefined) this.#fill(init)
  }

  append(name: unknown, value: unknown): void {
    const key = headerName(name)
    const text = headerValue(value, key)
    this.#change()
    this.#push(key, text)
  }

  delete(name: unknown): void {
    const key = headerName(name)
    this.#change()
    this.#list = this.#without(key)
  }

  get(name: unknown): string | null {
    const key = headerName(name)
    const list = this.#list
    let found: string | null = null
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === key) found = found === null ? list[index + 1]! : `${found}, ${list[index + 1]}`
    }
    return found
  }

  getSetCookie(): string[] {
    const list = this.#list
    const values: string[] = []
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === 'set-cookie') values[values.length] = list[index + 1]!
    }
    return values
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
    return this.entries()
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    return `Headers ${inspect(Object.fromEntries(this))}`
  }

  get [Symbol.toStringTag](): string {
    return 'Headers'
  }

  #fill(init: unknown): void {
    if ((typeof init !== 'object' && typeof init !== 'function') || init === null) {
      throw new SafeTypeError('Headers needs an object or pairs.')
    }
    if (isHeaders(init)) {
      this.#list = arraySlice(init.#list)
      return
    }
    const iterator = (init as { [Symbol.iterator]?: unknown })[Symbol.iterator]
    if (iterator === undefined || iterator === null) {
      const names = objectKeys(init)
      for (let index = 0; index < names.length; index++) {
        const name = names[index]!
        this.append(name, (init as Record<string, unknown>)[name])
      }
      return
    }
    for (const item of init as Iterable<Iterable<unknown>>) {
      const pair = isArray(item) ? (item as unknown[]) : [...item]
      if (pair.length !== 2) throw new SafeTypeError('Headers needs pairs of a name and a value.')
      this.append(pair[0], pair[1])
    }
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

  #without(name: string, but = -1): string[] {
    const list = this.#list
    const rest: string[] = []
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] === name && index !== but) continue
      rest[rest.length] = list[index]!
      rest[rest.length] = list[index + 1]!
    }
    return rest
  }

  /** What iteration gives: names sorted and joined, but for `set-cookie`. */
  #pairs(): Pairs {
    if (this.#sorted !== undefined) return this.#sorted
    const list = this.#list
    const pairs: [string, string][] = []
    const places = new SafeMap<string, [string, string]>()
    for (let index = 0; index < list.length; index += 2) {
      const name = list[index]!
      const value = list[index + 1]!
      const place = name === 'set-cookie' ? undefined : places.get(name)
      if (place === undefined) {
        const pair: [string, string] = [name, value]
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

/** The headers as the JSON text of a HeaderList. Names are tokens, which need no escapes. */
export function headersJson(list: readonly string[]): string {
  let json = '['
  for (let index = 0; index < list.length; index += 2) {
    json += `${index === 0 ? '["' : ',["'}${list[index]}",${jsonStringify(list[index + 1])}]`
  }
  return `${json}]`
}
